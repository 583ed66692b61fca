// Work that cannot be done in time is refused before it costs anything.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace longshort {

// `fast`: what the work takes at the fastest. What waits before it does not count: that may be cancelled, or refused
// itself. Errors: DEADLINE_EXCEEDED naming the predicted time, and the remaining time or how long ago the deadline
// passed.
absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now);

}  // namespace longshort
