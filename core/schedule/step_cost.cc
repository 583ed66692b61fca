#include "core/schedule/step_cost.h"

#include <algorithm>
#include <cmath>

namespace longshort::core {
namespace {

// After the first step only the total is known. Until later steps separate the parts, the fixed part counts like this
// many rows.
constexpr double kFixedInRows = 32;
// The fraction of a misprediction that a step corrects after the first steps, and the maximum factor of one correction.
constexpr double kLearningRate = 0.3;
constexpr double kLargestFactor = 4;

}  // namespace

void StepCost::Learn(const StepRows& rows, absl::Duration step) {
  const double measured = absl::ToDoubleSeconds(step);
  if (measured <= 0) return;
  ++steps_;
  if (steps_ == 1) {
    const double row = measured / (kFixedInRows + static_cast<double>(rows.decoding + rows.prefill));
    fixed_ = kFixedInRows * row;
    decoding_row_ = prefill_row_ = row;
    return;
  }
  const double predicted = absl::ToDoubleSeconds(Of(rows));
  const double shares[] = {fixed_ / predicted, decoding_row_ * static_cast<double>(rows.decoding) / predicted,
                           prefill_row_ * static_cast<double>(rows.prefill) / predicted};
  const double factor = std::clamp(measured / predicted, 1 / kLargestFactor, kLargestFactor);
  const double rate = std::max(kLearningRate, 1 / static_cast<double>(steps_));
  const double squares = shares[0] * shares[0] + shares[1] * shares[1] + shares[2] * shares[2];
  const auto corrected = [&](double part, double share) { return part * std::pow(factor, rate * share / squares); };
  fixed_ = corrected(fixed_, shares[0]);
  decoding_row_ = corrected(decoding_row_, shares[1]);
  prefill_row_ = corrected(prefill_row_, shares[2]);
}

absl::Duration StepCost::Of(const StepRows& rows) const {
  return absl::Seconds(fixed_ + decoding_row_ * static_cast<double>(rows.decoding) +
                       prefill_row_ * static_cast<double>(rows.prefill));
}

}  // namespace longshort::core
