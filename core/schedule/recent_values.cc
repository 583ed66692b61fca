#include "core/schedule/recent_values.h"

#include <algorithm>
#include <cmath>

namespace longshort::core {

void RecentValues::Add(double value, absl::Time now) {
  values_[next_] = value;
  next_ = (next_ + 1) % kCapacity;
  count_ = std::min(count_ + 1, kCapacity);
  latest_ = now;
}

double RecentValues::Min(absl::Time now) const {
  return *std::min_element(values_.begin(), values_.begin() + count_) * DecayAt(now);
}

double RecentValues::Median(absl::Time now) const { return Median() * DecayAt(now); }

double RecentValues::Median() const {
  std::array<double, kCapacity> values = values_;
  const auto middle = values.begin() + (count_ - 1) / 2;
  std::nth_element(values.begin(), middle, values.begin() + count_);
  return *middle;
}

double RecentValues::DecayAt(absl::Time now) const {
  return std::exp2(-std::max(0.0, absl::FDivDuration(now - latest_, kHalfLife)));
}

}  // namespace longshort::core
