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

#include "absl/types/span.h"
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

// Adds the number of elements of each trained tensor to a stage: `stage_of` returns the index in `stages` for its name.
void AddParameters(absl::Span<const TensorShape> tensors, std::vector<StageCost>& stages,
                   const std::function<size_t(std::string_view name)>& stage_of);

}  // namespace longshort::models
