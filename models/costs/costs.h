// What a model costs, known from its config.json alone: for operators who choose a model, and for tests against the
// published figures.
//
// Counted as fvcore counts, which the published figures come from: 1 for each multiply-add of a convolution, linear
// layer or matrix product, 5 for each element that a layer norm or batch norm gives; softmax, GELU and additions are
// free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/weights/cvt_config.h"
#include "models/weights/language_model_config.h"
#include "models/weights/tensors.h"
#include "models/weights/text_classifier_config.h"
#include "models/weights/vil_config.h"

namespace longshort::models {

// What a part of a model costs: a row of its description.
struct StageCost {
  static constexpr double kPerNormElement = 5;

  std::string name;  // "stage 1", "layer 2", "head"
  // The length and width of the sequence that runs through its blocks; 0 where nothing does.
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t parameters = 0;  // trained numbers
  // For one item; whole numbers, which may be more than an int64_t holds where a configuration is allowed to be absurd.
  double multiply_adds = 0;    // of matrix products and convolutions
  double normed_elements = 0;  // that layer norms give

  // In multiply-adds, norms included.
  double work() const { return multiply_adds + kPerNormElement * normed_elements; }
};

struct ModelDescription {
  std::string architecture;
  std::string item;  // what the multiply-adds are of: "one image of 224 x 224 pixels"
  std::vector<StageCost> stages;
  // Language models only: the most that a stream keeps, in numbers (4 bytes each in fp32, 2 in bf16), and in bytes
  // of float32, whatever the precision.
  int64_t cached_numbers = 0;
  int64_t open_chunk_bytes = 0;

  int64_t parameters() const;
  double work() const;
};

ModelDescription Describe(const LanguageModelConfig& config);
ModelDescription Describe(const TextClassifierConfig& config);
ModelDescription Describe(const VilConfig& config);
ModelDescription Describe(const CvtConfig& config);

// The stages of a classifier of images in order, then the head (the last layer norm, pooling and the linear map). Costs
// are of one image: for a CvT*-LS of this size, in pixels, that CheckCvtImageSize accepts. Window attention counts
// every place that a window has, as it is computed and as the published figures were counted: at the border of the
// grid, some of them hold no token. Batch norms count with the layer norms, as in training; a served model has folded
// them into its convolutions.
std::vector<StageCost> VilCosts(const VilConfig& config);
std::vector<StageCost> CvtCosts(const CvtConfig& config, int64_t height, int64_t width);
// The sum of their multiply-adds.
double CvtMultiplyAdds(const CvtConfig& config, int64_t height, int64_t width);

// Adds the number of elements of each trained tensor to a stage: `stage_of` returns the index in `stages` for its name.
void AddParameters(absl::Span<const TensorShape> tensors, std::vector<StageCost>& stages,
                   const std::function<size_t(std::string_view name)>& stage_of);

// Reads config.json of any architecture. `name` stands for the file in errors.
// Errors: INVALID_ARGUMENT naming the file and what is wrong in it.
absl::StatusOr<ModelDescription> DescribeConfig(std::string_view text, const std::string& name);

// The description as a table, with its totals and what was counted; ends with a newline.
std::string ToText(const ModelDescription& description);

}  // namespace longshort::models
