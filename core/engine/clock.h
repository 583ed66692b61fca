// What time it is. Tests put a clock of their own in its place.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace longshort {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace longshort
