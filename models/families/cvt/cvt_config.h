// The config.json of a CvT with long-short attention (CvT*-LS), parsed strictly.
//
//   {"architecture": "cvt", "stage_widths": [64, 192, 384], ..., "weight_standardization_epsilon": 1e-5,
//    "preprocessing": {...}}
//
// All fields are required, and no others are allowed. Their names in the file are those below. Fields of a stage are
// lists in the file, with one number for each stage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/families/family.h"
#include "models/weights/config_fields.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

struct CvtStage {
  int64_t width = 64;             // "stage_widths": D, a multiple of heads
  int64_t heads = 1;              // "stage_heads"
  int64_t depth = 1;              // "stage_depths": blocks
  int64_t projection_rank = 64;   // "projection_ranks": r, vectors that the dynamic projection computes per head
  int64_t window_size = 8;        // "window_sizes": w, tokens along a side of a segment
  int64_t embedding_kernel = 7;   // "embedding_kernels": pixels or tokens along a side
  int64_t embedding_stride = 4;   // "embedding_strides"
  int64_t embedding_padding = 2;  // "embedding_paddings": zeros on each side, fewer than embedding_kernel

  // Tokens along an axis after the stage's embedding, if the axis has `length` pixels or tokens before:
  // (length + 2*padding - kernel) / stride + 1, rounded down; 0 if the kernel does not fit.
  int64_t EmbeddedLength(int64_t length) const;

  friend bool operator==(const CvtStage&, const CvtStage&) = default;
};

// The defaults are those of the published models.
struct CvtConfig {
  std::vector<CvtStage> stages;
  int64_t feed_forward_ratio = 4;  // the feed-forward network's inner width, in widths of the stage
  int64_t channels = 3;            // red, green, blue
  int64_t classes = 1000;
  int64_t projection_kernel = 3;          // of the depthwise convolutions for queries, keys and values; odd
  int64_t dynamic_projection_kernel = 3;  // of that for the dynamic projection; odd
  bool shared_dual_norm = true;           // values use the keys' DualLN, or (false) their own
  double layer_norm_epsilon = 1e-5;
  double batch_norm_epsilon = 1e-5;
  double weight_standardization_epsilon = 1e-5;
  ImagePreprocessingConfig preprocessing;

  friend bool operator==(const CvtConfig&, const CvtConfig&) = default;
};

// Checks that images of this size, in pixels, leave at least one token in every stage.
// Errors: INVALID_ARGUMENT naming the size and the stage whose kernel does not fit.
absl::Status CheckCvtImageSize(const CvtConfig& config, int64_t height, int64_t width);

// All fields of config.json.
std::vector<FieldDescription> CvtFields();

// Checks the ranges of all fields, and the rules between fields. `name` (the file) starts the message.
// For a valid config, the products of fields that the model computes do not overflow int64, images of the size that the
// preprocessing makes can be run, and the attention of one block and such an image has fewer than 2^30 scores.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit or rule.
absl::Status CheckCvtConfig(const CvtConfig& config, std::string_view name);

// Parses and checks config.json. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the field that is missing, unknown, of the wrong type or out of range.
absl::StatusOr<CvtConfig> ParseCvtConfig(std::string_view text, const std::string& name);

// The text of config.json; parsing it gives the same config.
std::string ToJson(const CvtConfig& config);

// The tensors of a CvT*-LS in model.safetensors, in the order of use: stage by stage, then `norm` and `head`. All are
// trained, except the batch norms' running statistics. REQUIRES: CheckCvtConfig accepts `config`.
std::vector<TensorShape> CvtTensors(const CvtConfig& config);

ModelDescription Describe(const CvtConfig& config);
// As VilCosts, for an image of this size in pixels, which CheckCvtImageSize must accept. Batch norms count like layer
// norms, as in training; serving folds them into the convolutions.
std::vector<StageCost> CvtCosts(const CvtConfig& config, int64_t height, int64_t width);
// The sum of the multiply-adds of all stages.
double CvtMultiplyAdds(const CvtConfig& config, int64_t height, int64_t width);

}  // namespace longshort::models
