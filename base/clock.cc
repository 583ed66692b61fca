#include "base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace longshort {

absl::Time MonotonicNow() {
  static const absl::Time wall_clock_begin = absl::Now();
  static const auto begin = std::chrono::steady_clock::now();
  return wall_clock_begin + absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

absl::Time ToWallClock(absl::Time time) { return absl::Now() + (time - MonotonicNow()); }

}  // namespace longshort
