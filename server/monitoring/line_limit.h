// Limits how often a line is logged: the first one, and then one in an interval.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace longshort::server {

// Not thread-safe.
class LineLimit final {
 public:
  explicit LineLimit(absl::Duration interval) : interval_(interval) {}

  // Whether to log a line at `now` (MonotonicNow()): if so, returns how many were left out since the last one.
  std::optional<int64_t> Pass(absl::Time now) {
    if (now < next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + interval_;
    return std::exchange(left_out_, 0);
  }

 private:
  const absl::Duration interval_;
  absl::Time next_ = absl::InfinitePast();
  int64_t left_out_ = 0;
};

}  // namespace longshort::server
