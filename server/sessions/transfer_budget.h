// How many bytes of sessions may be on their way, in and out, at once: a bound on the memory that this takes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"

namespace longshort::server {

// A client may have half of it. Beyond that, and beyond all of it, one session is always let through: the only one of
// its client, or of all.
//
// Thread-safe.
class TransferBudget final {
 public:
  // A part of the budget, given back when it is destroyed. Thread: one at a time.
  class Share final {
   public:
    Share() = default;
    Share(Budget::Share of_all, Budget::Share of_client, std::shared_ptr<Budget> client)
        : client_(std::move(client)), of_all_(std::move(of_all)), of_client_(std::move(of_client)) {}

    // As Budget::Share has them. Errors: RESOURCE_EXHAUSTED with a Refusal; then it holds what it held.
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

  // Takes `bytes` for this client, if there is room for `more` that will follow too. Errors: RESOURCE_EXHAUSTED with a
  // Refusal (core/schedule/refusal.h).
  absl::StatusOr<Share> Take(const std::string& client, int64_t bytes, int64_t more = 0);

  int64_t held() const { return all_->held(); }

 private:
  std::shared_ptr<Budget> BudgetOf(const std::string& client);

  const int64_t bytes_of_client_;
  const std::shared_ptr<Budget> all_;
  std::mutex mutex_;                                      // guards what follows
  std::map<std::string, std::weak_ptr<Budget>> clients_;  // those that hold something
};

// What moving sessions between servers needs of a server.
struct SessionTransfers {
  // From --session-key-file. Empty: this server lets no session go, and takes none.
  std::string key;
  std::shared_ptr<TransferBudget> budget;
  // This run of the server: no other one, here or elsewhere, is called so.
  std::string server;
};

// Errors: FAILED_PRECONDITION if the server has no key, saying what to do.
inline absl::Status CheckSessionsMove(const SessionTransfers& transfers) {
  if (!transfers.key.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "sessions cannot be moved: the servers that they move between must be started with one --session-key-file");
}

}  // namespace longshort::server
