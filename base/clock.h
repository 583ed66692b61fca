// What time it is. Tests put a clock of their own in its place.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort {

// The wall clock's time when it was first asked, and what has passed since by the monotonic clock. It never jumps: when
// somebody sets the machine's clock, no deadline passes and no wait changes its length. Thread-safe.
inline absl::Time MonotonicNow() {
  static const absl::Time wall_clock_begin = absl::Now();
  static const auto begin = std::chrono::steady_clock::now();
  return wall_clock_begin + absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

// What the wall clock shows now when MonotonicNow() will be, or was, `time`: for interfaces that know the wall clock
// alone. Infinite times stay what they are. Thread-safe.
inline absl::Time ToWallClock(absl::Time time) { return absl::Now() + (time - MonotonicNow()); }

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
