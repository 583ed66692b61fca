// Durations as they were measured, every one kept: percentiles are exact.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace longshort::load {

// Immutable: any thread may use it.
class Distribution final {
 public:
  Distribution() = default;
  explicit Distribution(std::vector<absl::Duration> samples);

  int64_t count() const { return static_cast<int64_t>(sorted_.size()); }
  // Zero if there is no sample; so are all below.
  absl::Duration Mean() const;
  absl::Duration Max() const { return Percentile(100); }
  // The smallest sample that at least `percent` of all samples are not above (the nearest rank; never a mean of two).
  // REQUIRES: percent in [0, 100].
  absl::Duration Percentile(double percent) const;

 private:
  std::vector<absl::Duration> sorted_;
};

}  // namespace longshort::load
