// A token bucket: so many units a second, and what was not used in the last second.
//
// It is kept as one time: when all that was taken will be paid for at the rate. The bucket is full when that time is
// past, and empty when it is as far ahead as the bucket is deep; beyond that it is in debt.
//
// Thread: none of its own; whoever owns it guards it.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort {

class RateLimit final {
 public:
  // Units a second; 0 is no limit. What was taken before stays taken, and is paid for at a higher rate from now on.
  void SetRate(double per_second, absl::Time now);
  bool limited() const { return unit_ > absl::ZeroDuration(); }

  // How long it takes until a whole unit is there; 0 if one is.
  absl::Duration UntilOneIsThere(absl::Time now) const { return UntilPaid(now, unit_); }
  // How long somebody should wait who found none: each is told a unit of its own, the next one after that of whom was
  // told before, so that those who are refused together do not come back together. Up to 5 s of units are told, then
  // the first ones again: some never come back.
  absl::Duration NextTurn(absl::Time now);
  // How long it takes until nothing is owed; 0 if nothing is.
  absl::Duration UntilNothingIsOwed(absl::Time now) const { return UntilPaid(now, absl::ZeroDuration()); }
  // Takes units, whether they are there or not.
  void Take(int64_t units, absl::Time now);

 private:
  absl::Duration UntilPaid(absl::Time now, absl::Duration more) const;

  absl::Duration unit_;   // that one unit takes; 0 without a limit
  absl::Duration depth_;  // of the bucket: what may be saved up
  double per_second_ = 0;
  absl::Time paid_ = absl::InfinitePast();
  absl::Time turn_ = absl::InfinitePast();  // that was told last
};

}  // namespace longshort
