// What the numbers of an operator may be: the same on the command line and in a model's serving.json.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort {

template <typename T>
struct OptionRange {
  T low;
  T high;

  bool Holds(T value) const { return value >= low && value <= high; }
};

using IntegerRange = OptionRange<int64_t>;
using DurationRange = OptionRange<absl::Duration>;

inline constexpr IntegerRange kMaxBatchSize = {1, 1024};
// Up to what one message can hold of them.
inline constexpr IntegerRange kMaxBatchTokens = {1, 1 << 30};
inline constexpr DurationRange kMaxQueueDelay = {absl::ZeroDuration(), absl::Minutes(1)};

// As many as there may be streams, for all of a model's workers.
inline constexpr IntegerRange kMaxStreams = {1, 65536};
inline constexpr DurationRange kStepTime = {absl::Milliseconds(1), absl::Seconds(10)};
inline constexpr IntegerRange kCacheBytes = {0, int64_t{1} << 50};
inline constexpr DurationRange kSessionTimeToLive = {absl::Seconds(1), absl::Hours(720)};

// gRPC counts milliseconds in an int, and draws a tenth more or less.
inline constexpr DurationRange kConnectionAge = {absl::Seconds(1), absl::Hours(480)};

inline constexpr IntegerRange kMaxQueuedRequests = {1, 1 << 20};
inline constexpr DurationRange kMaxQueueTime = {absl::Milliseconds(1), absl::Hours(1)};
// Of limits per client 0 means that there is none.
inline constexpr IntegerRange kMaxQueuedRequestsPerClient = {0, kMaxQueuedRequests.high};
inline constexpr DurationRange kMaxQueueTimePerClient = {absl::ZeroDuration(), kMaxQueueTime.high};
inline constexpr IntegerRange kMaxRunningPerClient = {0, kMaxStreams.high};

// core/schedule/priority_rounds.h holds weights to the same.
inline constexpr IntegerRange kPriorityWeight = {1, 1'000'000};
// Every version takes its memory.
inline constexpr IntegerRange kVersionsKept = {1, 1024};

}  // namespace longshort
