#include "models/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/_fused_adamw.h"
#include "c10/core/GradMode.h"

namespace longshort::models {

double LearningRate(const OptimizerOptions& options, int64_t step) {
  if (step < options.warmup_steps) {
    return options.peak_learning_rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  }
  const double progress =
      std::min(1.0, static_cast<double>(step - options.warmup_steps) /
                        static_cast<double>(std::max<int64_t>(1, options.total_steps - options.warmup_steps)));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return options.peak_learning_rate * (options.final_fraction + (1 - options.final_fraction) * cosine);
}

namespace {

// True for matrices and kernels, except the vectors of positions.
bool IsDecayed(const NamedParameter& parameter) {
  return parameter.name.ends_with(".weight") && parameter.value.dim() >= 2 &&
         parameter.name.find("position") == std::string::npos;
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const std::vector<NamedParameter>& parameters)
    : options_(options) {
  decayed_.weight_decay = options.weight_decay;
  for (const NamedParameter& parameter : parameters) {
    if (!parameter.value.requires_grad()) continue;
    Group& group = IsDecayed(parameter) ? decayed_ : plain_;
    group.names.push_back(parameter.name);
    group.values.push_back(parameter.value);
    group.means.push_back(at::zeros_like(parameter.value));
    group.squares.push_back(at::zeros_like(parameter.value));
    group.steps.push_back(at::zeros({}, at::kFloat));
  }
}

double Optimizer::Step(int64_t step, double learning_rate) {
  const c10::NoGradGuard no_grad;
  double sum_of_squares = 0;
  for (Group* group : {&decayed_, &plain_}) {
    for (at::Tensor& value : group->values) {
      if (!value.grad().defined()) value.mutable_grad() = at::zeros_like(value);
      sum_of_squares += std::pow(value.grad().norm().item<double>(), 2);
    }
  }
  const double norm = std::sqrt(sum_of_squares);
  if (!std::isfinite(norm)) return norm;
  const double scale = norm > options_.gradient_norm ? options_.gradient_norm / norm : 1.0;
  for (Group* group : {&decayed_, &plain_}) {
    for (at::Tensor& count : group->steps) count.fill_(static_cast<double>(step + 1));
    StepGroup(*group, learning_rate, scale);
  }
  return norm;
}

void Optimizer::StepGroup(Group& group, double learning_rate, double scale) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& value : group.values) {
    gradients.push_back(scale == 1.0 ? value.grad() : value.grad().mul_(scale));
    value.mutable_grad().reset();
  }
  at::_fused_adamw_(group.values, gradients, group.means, group.squares, /*max_exp_avg_sqs=*/{}, group.steps,
                    learning_rate, options_.beta1, options_.beta2, group.weight_decay, options_.epsilon,
                    /*amsgrad=*/false,
                    /*maximize=*/false);
}

std::vector<NamedParameter> Optimizer::State() const {
  std::vector<NamedParameter> state;
  for (const Group* group : {&decayed_, &plain_}) {
    for (size_t i = 0; i < group->names.size(); ++i) {
      state.push_back({"mean." + group->names[i], group->means[i]});
      state.push_back({"square." + group->names[i], group->squares[i]});
    }
  }
  return state;
}

}  // namespace longshort::models
