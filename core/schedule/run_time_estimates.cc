#include "core/schedule/run_time_estimates.h"

#include <algorithm>

namespace longshort {

std::optional<absl::Duration> RunTimeEstimates::Fastest(const RunShape& shape, absl::Time now) const {
  absl::Duration fastest = absl::InfiniteDuration();
  for (const RunTimeEstimator& estimator : estimators_) {
    const auto run = estimator.Of(shape, now);
    if (!run.has_value()) return std::nullopt;
    fastest = std::min(fastest, run->fast);
  }
  return fastest;
}

std::vector<absl::Duration> RunTimeEstimates::PartsOfRun(const RunShape& part) const {
  std::vector<absl::Duration> parts;
  parts.reserve(estimators_.size());
  for (const RunTimeEstimator& estimator : estimators_) parts.push_back(estimator.PartOfRun(part));
  return parts;
}

}  // namespace longshort
