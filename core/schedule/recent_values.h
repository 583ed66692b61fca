// The latest values of something that is measured again and again: what is usual, and what is the least to expect.
#pragma once

#include <array>
#include <cstddef>

#include "absl/time/time.h"

namespace longshort::core {

// Remembers a fixed number of them, so one stall is neither usual nor the least, and what changed for good is believed
// after a few measurements. For who refuses what takes too long: the longer ago the latest one is, the less it says, so
// what Least and Usual return at a time halves with every half-life, and nothing is held impossible for long without
// being tried again.
//
// Thread: none of its own; whoever owns it guards it.
class RecentValues {
 public:
  // `value` is at least 0.
  void Add(double value, absl::Time now);

  bool empty() const { return count_ == 0; }
  // The smallest, and the median, of those remembered. REQUIRES: not empty.
  double Min(absl::Time now) const;
  double Median(absl::Time now) const;
  // The median as it was, however long ago: for who bounds how much waits, and takes whatever comes while nothing does.
  double Median() const;

  static constexpr size_t kRemembered = 15;
  static constexpr absl::Duration kHalfLife = absl::Seconds(10);

 private:
  double DecayAt(absl::Time now) const;

  std::array<double, kRemembered> values_ = {};  // the first count_, in no order
  size_t count_ = 0;
  size_t next_ = 0;
  absl::Time latest_;
};

}  // namespace longshort::core
