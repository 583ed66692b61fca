// What the trainer of classifiers needs of a family of models: labelled examples, and the served module run so that
// gradients reach its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/train/example_order.h"
#include "models/train/model_writer.h"
#include "models/train/named_parameter.h"

namespace longshort {

// Threads: the shards call Train at the same time, each with weights of its own.
class TrainableClassifier {
 public:
  virtual ~TrainableClassifier() = default;

  virtual int64_t training_examples() const = 0;
  virtual int64_t held_out_examples() const = 0;

  // Random weights for training from nothing; `seed` decides every value.
  virtual std::vector<NamedParameter> InitialParameters(uint64_t seed) const = 0;

  // Puts draws that are cheap to compute together next to each other.
  virtual void Arrange(std::vector<Draw>& /*batch*/) const {}

  struct Scores {
    at::Tensor logits;                   // [examples, classes]
    at::Tensor targets;                  // [examples, classes]: how probable each class should be
    std::vector<at::Tensor> statistics;  // what batch normalisation saw; of as many tensors each time
  };
  // Training examples, varied as `seed` and the draws' numbers decide.
  virtual Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
                       uint64_t seed) const = 0;
  // Moves the running statistics among `parameters` towards those of a step, the mean over its calls of Train.
  virtual void MoveStatistics(const std::vector<NamedParameter>& /*parameters*/,
                              const std::vector<at::Tensor>& /*statistics*/) const {}
  // Held-out examples [first, first + count), as they are served.
  virtual Scores HeldOut(const std::vector<NamedParameter>& parameters, int64_t first, int64_t count) const = 0;

  // The files of the model directory beside the weights.
  virtual std::vector<ModelFile> Files() const = 0;
  // All of model and data that decides a run, as text.
  virtual std::string Settings() const = 0;
};

}  // namespace longshort
