// The current time. Tests replace Clock with their own.
#pragma once

#include <chrono>
#include <ctime>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort {

// The wall clock's time at the first call plus the monotonic clock's time since then. It never jumps: a change of the
// machine's clock affects neither deadlines nor waits. Thread-safe.
inline absl::Time MonotonicNow() {
  static const absl::Time wall_clock_begin = absl::Now();
  static const auto begin = std::chrono::steady_clock::now();
  return wall_clock_begin + absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

// Converts a time of MonotonicNow() to the wall clock, for interfaces that use the wall clock. Infinite times stay
// infinite. Thread-safe.
inline absl::Time ToWallClock(absl::Time time) { return absl::Now() + (time - MonotonicNow()); }

// The processor time that this thread has used.
inline absl::Duration ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

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

// The clock of all that has no other. Never destroyed.
inline const Clock& SystemClock() {
  static const Clock& clock = *new RealClock;
  return clock;
}

}  // namespace longshort
