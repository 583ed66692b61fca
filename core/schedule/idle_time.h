// How long a worker is idle before its model rests.
#pragma once

#include "absl/time/time.h"

namespace longshort {

// A worker that has had nothing to do for so long has its model rest: long enough that a client who waits for one
// answer before it asks again finds it awake.
inline constexpr absl::Duration kIdleTimeBeforeRest = absl::Milliseconds(100);

}  // namespace longshort
