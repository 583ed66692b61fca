// AdamW with warm-up, cosine decay and gradient clipping.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/train/parameters.h"

namespace longshort::models {

struct OptimizerOptions {
  double peak_learning_rate = 2e-3;
  int64_t warmup_steps = 100;  // the rate rises linearly from 0 over these
  int64_t total_steps = 1000;  // and falls along a cosine to `final_fraction` of the peak at this step
  double final_fraction = 0.02;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;   // on matrices and kernels, not on gains, biases and position vectors
  double gradient_norm = 1.0;  // longer gradients are scaled down to this
};

double LearningRate(const OptimizerOptions& options, int64_t step);

class Optimizer final {
 public:
  // Trains those of `parameters` that collect gradients.
  Optimizer(const OptimizerOptions& options, const std::vector<NamedParameter>& parameters);

  // Applies the collected gradients (0 where none was) as step number `step` (from 0) and clears them. Returns the
  // gradient's norm before clipping; if that is no finite number, nothing is applied.
  double Step(int64_t step);

  // The running means, to be saved and restored: "mean.<name>" and "square.<name>".
  std::vector<NamedParameter> State() const;

 private:
  struct Group {
    double weight_decay = 0;
    std::vector<at::Tensor> values, means, squares, steps;
    std::vector<std::string> names;
  };
  void StepGroup(Group& group, double learning_rate, double scale);

  OptimizerOptions options_;
  Group decayed_, plain_;
};

}  // namespace longshort::models
