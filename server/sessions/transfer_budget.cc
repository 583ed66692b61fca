#include "server/sessions/transfer_budget.h"

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"

namespace longshort {
namespace {

// What a session of 100 MiB takes over a network of 100 MB/s.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

absl::StatusOr<TransferBudget::Share> TransferBudget::Take(const std::shared_ptr<TransferBudget>& budget,
                                                           int64_t bytes) {
  const int64_t before = budget->held_.fetch_add(bytes);
  Share share(budget, bytes);
  if (before == 0 || before + bytes <= budget->capacity_bytes_) return share;
  absl::Status status =
      absl::ResourceExhaustedError(absl::StrCat("sessions on their way have ", before, " bytes and this one ", bytes,
                                                "; together they may have ", budget->capacity_bytes_));
  SetRefusal(status, {.retry_after = kRetryAfter, .queue_depth = 0});
  return status;
}

}  // namespace longshort
