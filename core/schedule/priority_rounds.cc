#include "core/schedule/priority_rounds.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::Status PriorityRounds::Check(const Options& options) {
  for (const int64_t weight : options.weights) {
    if (weight < 1 || weight > 1'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat("a priority's weight is ", weight, ", must be between 1 and 1000000"));
    }
  }
  if (options.quantum > absl::ZeroDuration() && options.quantum <= absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError("the priorities' quantum must be positive, and an hour at the most");
}

std::array<Priority, kPriorities> PriorityRounds::Order(const std::array<bool, kPriorities>& waiting) {
  int64_t rounds = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < kPriorities; ++i) {
    if (!waiting[i]) continue;
    absl::Duration rest;
    const int64_t needed = credit_[i] > absl::ZeroDuration() ? 0 : absl::IDivDuration(-credit_[i], Share(i), &rest) + 1;
    rounds = std::min(rounds, needed);
  }
  if (rounds > 0 && rounds < std::numeric_limits<int64_t>::max()) {
    for (size_t i = 0; i < kPriorities; ++i) credit_[i] = std::min(Share(i), credit_[i] + Share(i) * rounds);
  }
  std::array<Priority, kPriorities> order = {Priority::kHigh, Priority::kNormal, Priority::kLow};
  std::stable_partition(order.begin(), order.end(), [this](Priority priority) {
    return credit_[static_cast<size_t>(priority)] > absl::ZeroDuration();
  });
  return order;
}

void PriorityRounds::Charge(Priority priority, absl::Duration cost) {
  const auto i = static_cast<size_t>(priority);
  credit_[i] = std::min(Share(i), credit_[i] - cost);
}

void PriorityRounds::Forgive() {
  for (size_t i = 0; i < kPriorities; ++i) credit_[i] = Share(i);
}

}  // namespace longshort
