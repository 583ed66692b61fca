#include "server/sessions/transfer_budget.h"

#include <iterator>

#include "base/status_macros.h"
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
  if (const absl::Status status = of_client_.Grow(bytes); !status.ok()) return Refused(status);
  if (const absl::Status status = of_all_.Grow(bytes); !status.ok()) {
    of_client_.SetAmount(bytes_);
    return Refused(status);
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

void TransferBudget::Share::SetAmount(int64_t bytes) {
  of_client_.SetAmount(bytes);
  of_all_.SetAmount(bytes);
  bytes_ = bytes;
}

TransferBudget::TransferBudget(int64_t bytes)
    : bytes_of_client_(bytes / 2),
      all_(std::make_shared<Budget>(bytes, Budget::Names{.holders = "sessions in transfer", .unit = "bytes"})) {}

absl::StatusOr<TransferBudget::Share> TransferBudget::Take(const std::string& client, int64_t bytes, int64_t more) {
  std::shared_ptr<Budget> budget = BudgetOf(client);
  absl::StatusOr<Budget::Share> of_client = Budget::Take(budget, bytes, more);
  if (!of_client.ok()) return Refused(of_client.status());
  absl::StatusOr<Budget::Share> of_all = Budget::Take(all_, bytes, more);
  if (!of_all.ok()) return Refused(of_all.status());
  Share share(*std::move(of_all), *std::move(of_client), std::move(budget));
  share.bytes_ = bytes;
  return share;
}

std::shared_ptr<Budget> TransferBudget::BudgetOf(const std::string& client) {
  const MutexLock lock(mutex_);
  for (auto next = clients_.begin(); next != clients_.end();) {
    next = next->second.expired() ? clients_.erase(next) : std::next(next);
  }
  std::weak_ptr<Budget>& known = clients_[client];
  std::shared_ptr<Budget> budget = known.lock();
  if (budget == nullptr) {
    budget = std::make_shared<Budget>(bytes_of_client_,
                                      Budget::Names{.holders = "sessions of this client in transfer", .unit = "bytes"});
    known = budget;
  }
  return budget;
}

}  // namespace longshort::server
