// The most recent values of a repeated measurement, their minimum and their median.
#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace longshort::core {

// Remembers a fixed number of values. So one stall does not change the median, and a permanent change does after a few
// measurements. Min(now) and Median(now) halve every kHalfLife since the last value. So a caller that refuses slow work
// will eventually try it again.
//
// Thread: not thread-safe; the owner guards it.
class RecentValues {
 public:
  // `value` is at least 0.
  void Add(double value, absl::Time now);

  bool empty() const { return count_ == 0; }
  // The smallest value and the median. REQUIRES: not empty.
  double Min(absl::Time now) const;
  double Median(absl::Time now) const;
  // The median without decay. For callers that bound the queue's length, and admit any work while the queue is empty.
  double Median() const;

  static constexpr size_t kCapacity = 15;
  static constexpr absl::Duration kHalfLife = absl::Seconds(10);

 private:
  double DecayAt(absl::Time now) const;

  std::array<double, kCapacity> values_ = {};  // the first count_, in no order
  size_t count_ = 0;
  size_t next_ = 0;
  absl::Time latest_;
};

}  // namespace longshort::core
