// The costs of a model, computed from its config.json, for operators who choose a model and for tests against the
// published figures.
//
// The counts are those of fvcore, as in the published figures: 1 for each multiply-add of a convolution, linear layer
// or matrix product, and 5 for each output element of a layer norm or batch norm. Softmax, GELU and additions are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/vil/vil_config.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// The costs of a part of a model: a row of its description.
struct StageCost {
  static constexpr double kPerNormElement = 5;

  std::string name;  // "stage 1", "layer 2", "head"
  // Length and width of the sequence in its blocks; 0 without blocks.
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t parameters = 0;  // trained numbers
  // For one item. These are integers, but may exceed int64_t for absurd configurations.
  double multiply_adds = 0;    // of matrix products and convolutions
  double normed_elements = 0;  // output elements of layer norms

  // In multiply-adds, including norms.
  double work() const { return multiply_adds + kPerNormElement * normed_elements; }
};

struct ModelDescription {
  std::string architecture;
  std::string item;  // the unit of the multiply-adds: "one image of 224 x 224 pixels"
  // What a classifier answers, and what it was trained on: "multi_label_classification of 3 classes, trained on single
  // documents". Empty for a language model.
  std::string task;
  int64_t classes = 0;  // of a classifier; 0 for a language model or an encoder without a head
  std::vector<StageCost> stages;
  // Language models only: the maximum cache of a stream, in elements (4 bytes each in fp32, 2 in bf16), and the size of
  // its open chunk, which is float32 in both precisions.
  int64_t cached_numbers = 0;
  int64_t open_chunk_bytes = 0;

  int64_t parameters() const;
  double work() const;
};

ModelDescription Describe(const LanguageModelConfig& config);
ModelDescription Describe(const TextClassifierConfig& config);
ModelDescription Describe(const VilConfig& config);
ModelDescription Describe(const CvtConfig& config);

// The stages of an image classifier in order, then the head (the last layer norm, pooling and the linear map), for one
// image. The size for a CvT*-LS is in pixels, and CheckCvtImageSize must accept it. Window attention counts all places
// of a window, as it is computed and as in the published figures, although places outside the grid have no token. Batch
// norms count like layer norms, as in training; serving folds them into the convolutions.
std::vector<StageCost> VilCosts(const VilConfig& config);
std::vector<StageCost> CvtCosts(const CvtConfig& config, int64_t height, int64_t width);
// The sum of the multiply-adds of all stages.
double CvtMultiplyAdds(const CvtConfig& config, int64_t height, int64_t width);

// Adds the number of elements of each trained tensor to a stage: `stage_of` returns the index in `stages` for its name.
void AddParameters(absl::Span<const TensorShape> tensors, std::vector<StageCost>& stages,
                   const std::function<size_t(std::string_view name)>& stage_of);

// Describes a config.json of any architecture. `name` is the file's name in errors.
// Errors: INVALID_ARGUMENT naming the file and the problem.
absl::StatusOr<ModelDescription> DescribeConfig(std::string_view text, const std::string& name);

// Adds the line "classes 3: daisy, rose, tulip" to the task of a classifier, in the form of `longshort models`: the
// first 10 names of labels.txt. Errors: as ParseLabels.
absl::Status NameClasses(std::string_view labels_text, const std::string& name, ModelDescription& description);

// The description as a table, with totals and an explanation of the counts. Ends with a newline.
std::string ToText(const ModelDescription& description);

}  // namespace longshort::models
