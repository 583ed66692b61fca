#include "core/schedule/deadline_check.h"

#include "absl/strings/str_cat.h"

namespace longshort {

absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now) {
  const absl::Duration remaining = deadline - now;
  if (fast <= remaining) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the request would take at least ", absl::FormatDuration(fast),
                                                  ", and ", absl::FormatDuration(remaining),
                                                  " remain until its deadline"));
}

}  // namespace longshort
