// Lists the sessions of a server, and moves them to another server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/client.h"

namespace longshort::client {

// A session and the model (name and version) that it belongs to.
struct SessionOfModel {
  v1::ModelSelector model;
  v1::ListedSession session;

  // Returns a name such as "enwiki/1".
  std::string model_name() const;
};

// Lists the sessions of the model, or of all language models if it has no name: the caller's own, or those of all
// clients. A session that several versions of a model share appears once. Errors: those of the calls.
absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners);

struct DrainOptions {
  v1::ModelSelector model;
  // Time limit of the drain.
  absl::Duration timeout = absl::InfiniteDuration();
  // Called with the number of sessions before each round of moves.
  std::function<void(int64_t sessions)> on_sessions = [](auto) {};
  // Called after each move, never concurrently.
  std::function<void()> on_moved = [] {};
};

struct DrainResult {
  struct Left {
    SessionOfModel session;
    absl::Status why;
  };

  int64_t moved = 0;
  int64_t bytes = 0;  // of the moved sessions
  std::vector<Left> left;
  absl::Duration elapsed = absl::ZeroDuration();
};

// Moves the model's sessions of all clients to another server, a few at a time, the most recently used first. Waits for
// sessions in use and retries temporary failures. Ends when no session is left that can be moved, at the timeout, or if
// one of the clients is cancelled. In the last two cases both clients are cancelled and cannot be used again.
//
// Sessions are streamed, so little of each is in memory. A session ends at `from` only when `to` has it.
//
// Errors: the server does not list its sessions.
absl::StatusOr<DrainResult> DrainSessions(Client& from, Client& to, const DrainOptions& options);

}  // namespace longshort::client
