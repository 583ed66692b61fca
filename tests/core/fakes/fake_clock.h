// A clock that stands still until a test moves it.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "base/clock.h"

namespace longshort::core {

// Thread-safe.
class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Nanoseconds(nanoseconds_.load()); }
  void Advance(absl::Duration duration) { nanoseconds_ += absl::ToInt64Nanoseconds(duration); }

 private:
  std::atomic<int64_t> nanoseconds_ = 0;
};

}  // namespace longshort::core
