// Limits the bytes of sessions that are being exported or imported, and so the memory for transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"

namespace longshort::server {

// A client may hold half of the budget.
//
// Thread-safe.
class TransferBudget final {
 public:
  // A part of the budget, released by the destructor. Thread: one at a time.
  class Share final {
   public:
    Share() = default;
    explicit Share(Budget::Share bytes) : bytes_(std::move(bytes)) {}

    // As in Budget::Share. Errors: RESOURCE_EXHAUSTED with a Refusal; the share is then unchanged.
    absl::Status Grow(int64_t bytes);
    void SetAmount(int64_t bytes) { bytes_.SetAmount(bytes); }
    int64_t bytes() const { return bytes_.amount(); }

   private:
    Budget::Share bytes_;
  };

  // `parent`: the budget above; null for none.
  explicit TransferBudget(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);

  // Takes `bytes` for this client, if there is also room for `more` bytes that will follow. Errors: RESOURCE_EXHAUSTED
  // with a Refusal (core/schedule/refusal.h).
  absl::StatusOr<Share> Take(const std::string& client, int64_t bytes, int64_t more = 0);

  int64_t held() const { return clients_.all()->held(); }

 private:
  ClientBudgets clients_;
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
