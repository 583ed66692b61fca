#include "server/call/transfer_budget.h"

#include <utility>

#include "core/schedule/refusal.h"

namespace longshort::server {
namespace {

// The transfer time of a session of 100 MiB at 100 MB/s.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Status Refused(absl::Status status) {
  core::SetRefusal(status, {.retry_after = kRetryAfter, .queue_depth = 0});
  return status;
}

}  // namespace

absl::Status TransferBudget::Share::Grow(int64_t bytes) {
  absl::Status status = bytes_.Grow(bytes);
  return status.ok() ? status : Refused(std::move(status));
}

TransferBudget::TransferBudget(int64_t bytes, std::shared_ptr<Budget> parent)
    : clients_(std::make_shared<Budget>(bytes, Budget::Names{.holders = "sessions in transfer", .unit = "bytes"},
                                        std::move(parent)),
               bytes / 2, {.holders = "sessions of this client in transfer", .unit = "bytes"}) {}

absl::StatusOr<TransferBudget::Share> TransferBudget::Take(const std::string& client, int64_t bytes, int64_t more) {
  absl::StatusOr<Budget::Share> share = Budget::Take(clients_.Of(client), bytes, more);
  if (!share.ok()) return Refused(share.status());
  return Share(*std::move(share));
}

}  // namespace longshort::server
