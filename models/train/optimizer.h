// AdamW with a schedule of its learning rate, and gradient clipping.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/train/parameters.h"

namespace longshort::models {

enum class Schedule {
  kCosine,  // after the warm-up, a cosine brings the rate to `final_fraction` of its peak
  // PyTorch's OneCycleLR with a linear fall: the rate starts at 1/25 of its peak and ends at 4e-6 of it; beta1 falls
  // from 0.95 to 0.85 while the rate rises, and rises again while it falls.
  kOneCycle,
};

struct OptimizerOptions {
  Schedule schedule = Schedule::kCosine;
  double peak_learning_rate = 2e-3;
  int64_t warmup_steps = 100;  // steps in which the rate rises linearly to its peak
  int64_t total_steps = 1000;  // length of the schedule
  double final_fraction = 0.02;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;
  bool decays_all = false;     // else only matrices and kernels decay, not gains, biases and position vectors
  double gradient_norm = 1.0;  // maximum norm; longer gradients are scaled down to it
};

// The numbers that change from step to step.
struct StepRates {
  double learning_rate = 0, beta1 = 0;
};

// Those of step number `step` (from 0).
StepRates RatesOf(const OptimizerOptions& options, int64_t step);

// Sets all but the rate, the lengths and the weight decay to those of Long Range Arena's official training: one cycle,
// beta2 0.999, epsilon 1e-6, decay of all weights, and no clipping.
void UseOneCycle(OptimizerOptions& options);

class Optimizer final {
 public:
  // Trains those of `parameters` that require gradients.
  Optimizer(const OptimizerOptions& options, const std::vector<NamedParameter>& parameters);

  // Applies the gradients as step number `step` (from 0), and clears them. An undefined gradient counts as 0. Returns
  // the gradient's norm before clipping. If the norm is not finite, no gradient is applied.
  double Step(int64_t step, const StepRates& rates);

  // The running means, for a checkpoint: "mean.<name>" and "square.<name>".
  std::vector<NamedParameter> State() const;

 private:
  struct Group {
    double weight_decay = 0;
    std::vector<at::Tensor> values, means, squares, steps;
    std::vector<std::string> names;
  };
  void StepGroup(Group& group, const StepRates& rates, double scale);

  OptimizerOptions options_;
  Group decayed_, plain_;
};

}  // namespace longshort::models
