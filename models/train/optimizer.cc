#include "models/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/ops/_fused_adamw.h"
#include "c10/core/GradMode.h"

namespace longshort::models {

namespace {

// The fraction of `length` that `steps` is, between 0 and 1.
double Progress(int64_t steps, int64_t length) {
  return std::clamp(static_cast<double>(steps) / static_cast<double>(std::max<int64_t>(1, length)), 0.0, 1.0);
}

double Between(double from, double to, double progress) { return from + (to - from) * progress; }

StepRates OneCycle(const OptimizerOptions& options, int64_t step) {
  constexpr double kLowBeta1 = 0.85, kHighBeta1 = 0.95;
  const double peak = options.peak_learning_rate, first = peak / 25, last = first / 1e4;
  const int64_t top = options.warmup_steps - 1, end = options.total_steps - 1;  // steps of the peak and of the end
  if (step <= top) {
    const double progress = Progress(step, top);
    return {Between(first, peak, progress), Between(kHighBeta1, kLowBeta1, progress)};
  }
  const double progress = Progress(step - top, end - top);
  return {Between(peak, last, progress), Between(kLowBeta1, kHighBeta1, progress)};
}

}  // namespace

StepRates RatesOf(const OptimizerOptions& options, int64_t step) {
  if (options.schedule == Schedule::kOneCycle) return OneCycle(options, step);
  if (step < options.warmup_steps) {
    return {options.peak_learning_rate * static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps),
            options.beta1};
  }
  const double progress = Progress(step - options.warmup_steps, options.total_steps - options.warmup_steps);
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return {options.peak_learning_rate * (options.final_fraction + (1 - options.final_fraction) * cosine), options.beta1};
}

void UseOneCycle(OptimizerOptions& options) {
  options.schedule = Schedule::kOneCycle;
  options.beta2 = 0.999;
  options.epsilon = 1e-6;
  options.decays_all = true;
  options.gradient_norm = std::numeric_limits<double>::infinity();
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
    Group& group = options.decays_all || IsDecayed(parameter) ? decayed_ : plain_;
    group.names.push_back(parameter.name);
    group.values.push_back(parameter.value);
    group.means.push_back(at::zeros_like(parameter.value));
    group.squares.push_back(at::zeros_like(parameter.value));
    group.steps.push_back(at::zeros({}, at::kFloat));
  }
}

double Optimizer::Step(int64_t step, const StepRates& rates) {
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
    StepGroup(*group, rates, scale);
  }
  return norm;
}

void Optimizer::StepGroup(Group& group, const StepRates& rates, double scale) {
  if (group.values.empty()) return;
  std::vector<at::Tensor> gradients;
  for (at::Tensor& value : group.values) {
    gradients.push_back(scale == 1.0 ? value.grad() : value.grad().mul_(scale));
    value.mutable_grad().reset();
  }
  at::_fused_adamw_(group.values, gradients, group.means, group.squares, /*max_exp_avg_sqs=*/{}, group.steps,
                    rates.learning_rate, rates.beta1, options_.beta2, group.weight_decay, options_.epsilon,
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
