#include "server/sessions/transfer_budget.h"

#include "core/schedule/refusal.h"

namespace longshort {
namespace {

// What a session of 100 MiB takes over a network of 100 MB/s.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

std::shared_ptr<Budget> TransferBudget(int64_t bytes) {
  return std::make_shared<Budget>(bytes, Budget::Names{.holders = "sessions on their way", .unit = "bytes"});
}

absl::StatusOr<Budget::Share> TakeForTransfer(const std::shared_ptr<Budget>& budget, int64_t bytes) {
  absl::StatusOr<Budget::Share> share = Budget::Take(budget, bytes);
  if (share.ok()) return share;
  absl::Status status = share.status();
  SetRefusal(status, {.retry_after = kRetryAfter, .queue_depth = 0});
  return status;
}

}  // namespace longshort
