#include "core/schedule/priority_rounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace longshort::core {

absl::Status PriorityRounds::Check(const Options& options) {
  for (const int64_t weight : options.weights) {
    if (weight < 1 || weight > 1'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat("a priority's weight is ", weight, ", must be between 1 and 1000000"));
    }
  }
  if (options.quantum > absl::ZeroDuration() && options.quantum <= absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError("the priorities' quantum must be positive, and at most an hour");
}

std::optional<Priority> PriorityRounds::Next(const std::array<bool, kPriorities>& waiting) const {
  std::optional<Priority> next;
  for (const Priority priority : {Priority::kHigh, Priority::kNormal, Priority::kLow}) {
    if (!waiting[static_cast<size_t>(priority)]) continue;
    if (!next.has_value() || RoundsUntil(priority) < RoundsUntil(*next)) next = priority;
  }
  return next;
}

void PriorityRounds::BeginRounds(Priority next) {
  const int64_t rounds = RoundsUntil(next);
  if (rounds == 0) return;
  for (size_t i = 0; i < kPriorities; ++i) credit_[i] = std::min(Share(i), credit_[i] + Share(i) * rounds);
}

int64_t PriorityRounds::RoundsUntil(Priority next) const {
  const auto i = static_cast<size_t>(next);
  absl::Duration rest;
  return credit_[i] > absl::ZeroDuration() ? 0 : absl::IDivDuration(-credit_[i], Share(i), &rest) + 1;
}

void PriorityRounds::Charge(Priority priority, absl::Duration cost) {
  const auto i = static_cast<size_t>(priority);
  credit_[i] = std::min(Share(i), credit_[i] - cost);
}

void PriorityRounds::ClearDebts() {
  for (size_t i = 0; i < kPriorities; ++i) credit_[i] = Share(i);
}

}  // namespace longshort::core
