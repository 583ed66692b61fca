// config.json of a CvT with long-short attention (CvT*-LS), read strictly.
//
//   {"architecture": "cvt", "stage_widths": [64, 192, 384], ..., "weight_standardization_epsilon": 1e-5,
//    "preprocessing": {...}}
//
// Every field is required, none but these is allowed; each stands under the name that it has below. What a stage has of
// its own is a list there, with one number for each stage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

struct CvtStage {
  int64_t width = 64;             // "stage_widths": D, a multiple of heads
  int64_t heads = 1;              // "stage_heads"
  int64_t depth = 1;              // "stage_depths": blocks
  int64_t projection_rank = 64;   // "projection_ranks": r, vectors that the dynamic projection gives per head
  int64_t window_size = 8;        // "window_sizes": w, tokens along a side of a segment
  int64_t embedding_kernel = 7;   // "embedding_kernels": pixels or tokens along a side
  int64_t embedding_stride = 4;   // "embedding_strides"
  int64_t embedding_padding = 2;  // "embedding_paddings": zeros on each side, fewer than the kernel is long

  // Tokens along an axis that was `length` before the stage's embedding: (length + 2*padding - kernel) / stride + 1,
  // rounded down; 0 if the kernel does not fit in.
  int64_t EmbeddedLength(int64_t length) const;

  friend bool operator==(const CvtStage&, const CvtStage&) = default;
};

// The defaults are those of the published models.
struct CvtConfig {
  std::vector<CvtStage> stages;
  int64_t feed_forward_ratio = 4;  // the feed-forward layer's inner width, in widths
  int64_t channels = 3;            // red, green, blue
  int64_t classes = 1000;
  int64_t projection_kernel = 3;          // of the depthwise convolutions before queries, keys and values; odd
  int64_t dynamic_projection_kernel = 3;  // of the one before the dynamic projection; odd
  bool shared_dual_norm = true;           // values are normalised by the keys' DualLN, or (false) by their own
  double layer_norm_epsilon = 1e-5;
  double batch_norm_epsilon = 1e-5;
  double weight_standardization_epsilon = 1e-5;
  ImagePreprocessingConfig preprocessing;

  friend bool operator==(const CvtConfig&, const CvtConfig&) = default;
};

// Checks that images of this size, in pixels, leave at least one token in every stage.
// Errors: INVALID_ARGUMENT with the size and the stage whose kernel it does not fill.
absl::Status CheckCvtImageSize(const CvtConfig& config, int64_t height, int64_t width);

// Every field of config.json.
std::vector<FieldDescription> CvtFields();

// Checks every field's range and the rules between fields; `name` (the file) starts the message.
// A config that passes can be calculated with: no product of its fields that the model forms exceeds int64, images of
// the size that the preprocessing gives can be run, and the attention scores of one block and such an image stay below
// 2^30 elements.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckCvtConfig(const CvtConfig& config, std::string_view name);

// Reads and checks config.json. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<CvtConfig> ParseCvtConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const CvtConfig& config);

// The tensors that model.safetensors of a CvT*-LS holds.
//
// Every tensor of a model of this configuration, which holds the rules of CheckCvtConfig, in the order of use: stage by
// stage, then `norm` and `head`. All are trained, except the batch norms' running statistics.
std::vector<TensorShape> CvtTensors(const CvtConfig& config);

}  // namespace longshort::models
