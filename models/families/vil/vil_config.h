// config.json of a ViL with long-short attention (ViL-LS), read strictly.
//
//   {"architecture": "vil", "stages": "l1,h3,d96,n1,s1,g1,p4,f7,a0,r8_...", "image_size": 224, "channels": 3,
//    "classes": 1000, "embedding_norm": true, "average_pooling": false, "preprocessing": {...}}
//
// All fields are required, and no others are allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/families/family.h"
#include "models/families/vil/vil_stages.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

struct VilConfig {
  std::vector<VilStage> stages;  // "stages" as an architecture string
  int64_t image_size = 224;      // pixels of both sides; images of another size are refused
  int64_t channels = 3;          // red, green, blue
  int64_t classes = 1000;
  bool embedding_norm = true;    // a layer norm after each stage's patch convolution
  bool average_pooling = false;  // pools all tokens, even where the last stage has global tokens
  ImagePreprocessingConfig preprocessing;

  // Patches along a side of the grid of stage `index`, counted from 0: each stage divides by its patch size and
  // ignores the remainder.
  int64_t GridSide(size_t index) const;
  // Whether the classes come from the mean of all tokens of the last stage, or from its first global token.
  bool PoolsAllTokens() const { return average_pooling || stages.back().global_tokens == 0; }

  friend bool operator==(const VilConfig&, const VilConfig&) = default;
};

// Every field of config.json.
std::vector<FieldDescription> VilFields();

// Checks every field's range and the rules between fields; `name` (the file) starts the message.
// For a valid config, the products of fields that the model computes do not overflow int64, and the attention scores of
// one block and image stay below 2^30 elements.
// Errors: INVALID_ARGUMENT naming the field (in "stages" the stage and the attribute), its value and the limit or rule.
absl::Status CheckVilConfig(const VilConfig& config, std::string_view name);

// Reads and checks config.json. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<VilConfig> ParseVilConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const VilConfig& config);

// Rows of the table of relative positions of windows of w x w patches (w > 0), wp = w / 2:
// 2 (w + wp - 1) (2 wp + w + 1) + 1, more than the index of any two patches reaches.
int64_t WindowBiasRows(int64_t window_size);

// The number of biases by relative position that a CPU keeps for its kernels, in addition to the tensors' numbers.
int64_t VilKernelBiasElements(const VilConfig& config);

// Elements from a row to the next of the biases of all pairs of tokens that a GPU keeps: a multiple of 16.
constexpr int64_t VilBiasStride(int64_t tokens) { return (tokens + 15) / 16 * 16; }
// The number of those biases, in addition to the tensors' numbers.
int64_t VilPairBiasElements(const VilConfig& config);

// The tensors that model.safetensors of a ViL-LS holds, in the order of use: stage by stage, then `norm` and `head`.
// They have the official names without `module.`, and all are trained. The official buffers relative_position_index and
// tensors without elements (cls_pos_embed of a stage without global tokens) are not stored. REQUIRES: CheckVilConfig.
std::vector<TensorShape> VilTensors(const VilConfig& config);

ModelDescription Describe(const VilConfig& config);
// The stages in order, then the head (the last layer norm, pooling and the linear map), for one image. Window attention
// counts all places of a window, as it is computed and as in the published figures, although places outside the grid
// have no token.
std::vector<StageCost> VilCosts(const VilConfig& config);

}  // namespace longshort::models
