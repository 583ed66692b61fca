// AdamW with warm-up, cosine decay and gradient clipping.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/train/parameters.h"

namespace longshort::models {

struct OptimizerOptions {
  double peak_learning_rate = 2e-3;
  int64_t warmup_steps = 100;  // steps in which the rate rises linearly from 0 to its peak
  int64_t total_steps = 1000;  // step at which a cosine has brought the rate to `final_fraction` of its peak
  double final_fraction = 0.02;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;   // applies to matrices and kernels, not to gains, biases and position vectors
  double gradient_norm = 1.0;  // maximum norm; longer gradients are scaled down to it
};

double LearningRate(const OptimizerOptions& options, int64_t step);

class Optimizer final {
 public:
  // Trains those of `parameters` that require gradients.
  Optimizer(const OptimizerOptions& options, const std::vector<NamedParameter>& parameters);

  // Applies the gradients as step number `step` (from 0), with this learning rate, and clears them. An undefined
  // gradient counts as 0. Returns the gradient's norm before clipping. If the norm is not finite, no gradient is
  // applied.
  double Step(int64_t step, double learning_rate);

  // The running means, for a checkpoint: "mean.<name>" and "square.<name>".
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
