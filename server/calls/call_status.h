// What the error of one item means to its call.
#pragma once

#include "absl/status/status.h"

namespace longshort {

// Whether an item's error ends the whole call: nobody waits any more, or the server is stopping. Other errors leave the
// other items alone.
inline bool EndsCall(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

}  // namespace longshort
