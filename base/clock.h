// What time it is. Tests put a clock of their own in its place.
#pragma once

#include "absl/time/time.h"

namespace longshort {

// The wall clock's time when it was first asked, and what has passed since by the monotonic clock. It never jumps: when
// somebody sets the machine's clock, no deadline passes and no wait changes its length. Thread-safe.
absl::Time MonotonicNow();

// What the wall clock shows now when MonotonicNow() will be, or was, `time`: for interfaces that know the wall clock
// alone. Infinite times stay what they are. Thread-safe.
absl::Time ToWallClock(absl::Time time);

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return MonotonicNow(); }
};

}  // namespace longshort
