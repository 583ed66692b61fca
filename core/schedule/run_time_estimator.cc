#include "core/schedule/run_time_estimator.h"

#include <algorithm>

namespace longshort::core {
namespace {

int Magnitude(int64_t units) {
  int magnitude = 0;
  for (; units > 1; units /= 2) ++magnitude;
  return magnitude;
}

absl::Duration Times(double seconds_per_unit, int64_t units) {
  return absl::Seconds(seconds_per_unit * static_cast<double>(units));
}

}  // namespace

void RunTimeEstimator::Learn(const RunShape& shape, absl::Duration run, absl::Time now) {
  if (kinds_.count(shape.kind) == 0 && kinds_.size() == kMaxKinds) RemoveOldest();
  Kind& kind = kinds_[shape.kind];
  kind.latest = now;
  const double seconds_per_unit = absl::ToDoubleSeconds(run) / static_cast<double>(shape.units);
  kind.seconds_per_unit.Add(seconds_per_unit, now);
  kind.of_magnitude[Magnitude(shape.units)].Add(seconds_per_unit, now);
}

void RunTimeEstimator::RemoveOldest() {
  kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(),
                                [](const auto& a, const auto& b) { return a.second.latest < b.second.latest; }));
}

std::optional<RunTime> RunTimeEstimator::Of(const RunShape& shape, absl::Time now) const {
  const auto kind = kinds_.find(shape.kind);
  if (kind == kinds_.end()) return std::nullopt;
  const auto runs = kind->second.of_magnitude.find(Magnitude(shape.units));
  if (runs == kind->second.of_magnitude.end()) return std::nullopt;
  return RunTime{.fast = Times(runs->second.Min(now), shape.units),
                 .typical = Times(runs->second.Median(now), shape.units)};
}

absl::Duration RunTimeEstimator::PartOfRun(const RunShape& part) const {
  const auto kind = kinds_.find(part.kind);
  if (kind == kinds_.end()) return absl::ZeroDuration();
  return Times(kind->second.seconds_per_unit.Median(), part.units);
}

std::optional<absl::Duration> RunTimeEstimatorPerDevice::Fastest(const RunShape& shape, absl::Time now) const {
  return Min([&](const RunTimeEstimator& estimator) -> std::optional<absl::Duration> {
    const auto run = estimator.Of(shape, now);
    return run.has_value() ? std::optional(run->fast) : std::nullopt;
  });
}

}  // namespace longshort::core
