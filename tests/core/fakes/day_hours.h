// What the simulated days of both kinds of engine have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace longshort::core {

inline bool IsNight(int hour) { return hour < 6 || hour >= 22; }

// A rush takes a part of these hours.
inline constexpr std::array<int, 2> kRushHours = {10, 19};
inline constexpr absl::Duration kRushBegin = absl::Minutes(10);
inline constexpr absl::Duration kRushEnd = absl::Minutes(22);
// So long after it began, all of its clients have a line.
inline constexpr absl::Duration kLinesFill = absl::Minutes(1);

inline bool IsRushHour(int hour) { return std::count(kRushHours.begin(), kRushHours.end(), hour) > 0; }

// A client that sends all it has at once.
inline constexpr char kGreedy[] = "greedy";
inline constexpr int64_t kMaxRetries = 3;

}  // namespace longshort::core
