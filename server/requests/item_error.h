// Errors of one item of a call, which leave the others alone.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/schedule/refusal.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// Whether an item's error ends the whole call: nobody waits any more, or the server is stopping.
inline bool EndsCall(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

inline v1::ItemError ToItemError(const absl::Status& status) {
  v1::ItemError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(std::string(status.message()));
  if (const auto refusal = GetRefusal(status); refusal.has_value()) {
    error.set_retry_after_seconds(absl::ToDoubleSeconds(refusal->retry_after));
  }
  return error;
}

}  // namespace longshort
