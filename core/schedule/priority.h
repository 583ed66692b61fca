// How important a request is to who sent it.
#pragma once

#include <cstddef>

namespace longshort {

// A higher one gets more of the worker's time, never all of it (core/schedule/priority_rounds.h).
enum class Priority { kLow, kNormal, kHigh };

inline constexpr size_t kPriorities = 3;

}  // namespace longshort
