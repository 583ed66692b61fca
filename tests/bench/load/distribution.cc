#include "tests/bench/load/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace longshort::load {

Distribution::Distribution(std::vector<absl::Duration> samples) : sorted_(std::move(samples)) {
  std::sort(sorted_.begin(), sorted_.end());
}

absl::Duration Distribution::Mean() const {
  if (sorted_.empty()) return absl::ZeroDuration();
  return std::accumulate(sorted_.begin(), sorted_.end(), absl::ZeroDuration()) / count();
}

absl::Duration Distribution::Percentile(double percent) const {
  if (sorted_.empty()) return absl::ZeroDuration();
  const auto rank = static_cast<int64_t>(std::ceil(percent * static_cast<double>(count()) / 100));
  return sorted_[static_cast<size_t>(std::clamp<int64_t>(rank, 1, count()) - 1)];
}

}  // namespace longshort::load
