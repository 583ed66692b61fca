// Limits the bytes of sessions that are being exported or imported, and so the memory for transfers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"
#include "base/mutex.h"

namespace longshort::server {

// A client may hold half of the budget. A single transfer may exceed a limit: the client's if it is the client's only
// one, the total if there is no other at all.
//
// Thread-safe.
class TransferBudget final {
 public:
  // A part of the budget, released by the destructor. Thread: one at a time.
  class Share final {
   public:
    Share() = default;
    Share(Budget::Share of_all, Budget::Share of_client, std::shared_ptr<Budget> client)
        : client_(std::move(client)), of_all_(std::move(of_all)), of_client_(std::move(of_client)) {}

    // As in Budget::Share. Errors: RESOURCE_EXHAUSTED with a Refusal; the share is then unchanged.
    absl::Status Grow(int64_t bytes);
    void SetAmount(int64_t bytes);
    int64_t bytes() const { return bytes_; }

   private:
    friend class TransferBudget;

    int64_t bytes_ = 0;
    std::shared_ptr<Budget> client_;
    Budget::Share of_all_;
    Budget::Share of_client_;
  };

  explicit TransferBudget(int64_t bytes);

  // Takes `bytes` for this client, if there is also room for `more` bytes that will follow. Errors: RESOURCE_EXHAUSTED
  // with a Refusal (core/schedule/refusal.h).
  absl::StatusOr<Share> Take(const std::string& client, int64_t bytes, int64_t more = 0);

  int64_t held() const { return all_->held(); }

 private:
  std::shared_ptr<Budget> BudgetOf(const std::string& client);

  const int64_t bytes_of_client_;
  const std::shared_ptr<Budget> all_;
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Budget>> clients_ ABSL_GUARDED_BY(mutex_);  // clients with shares
};

// Configuration and state for moving sessions between servers.
struct SessionTransfers {
  // From --session-key-file. Empty: this server neither exports nor imports sessions.
  std::string key;
  std::shared_ptr<TransferBudget> budget;
  // A unique id of this run of the server.
  std::string server;
};

// Errors: FAILED_PRECONDITION with the remedy if the server has no key.
inline absl::Status CheckSessionsMove(const SessionTransfers& transfers) {
  if (!transfers.key.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError("sessions cannot be moved: start both servers with the same --session-key-file");
}

}  // namespace longshort::server
