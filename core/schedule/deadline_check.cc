#include "core/schedule/deadline_check.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace longshort {

absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now) {
  const absl::Duration remaining = deadline - now;
  if (fast <= remaining) return absl::OkStatus();
  const std::string needed = absl::StrCat("the request would take at least ", absl::FormatDuration(fast), ", and ");
  if (remaining <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError(
        absl::StrCat(needed, "its deadline has passed, ", absl::FormatDuration(-remaining), " ago"));
  }
  return absl::DeadlineExceededError(
      absl::StrCat(needed, absl::FormatDuration(remaining), " remain until its deadline"));
}

}  // namespace longshort
