// What moving sessions between servers needs of a server.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/sessions/transfer_budget.h"

namespace longshort {

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

}  // namespace longshort
