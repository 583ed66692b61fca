// The sessions of a server: which there are, and how they go to another server.
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

// A session with its model, name and version.
struct SessionOfModel {
  v1::ModelSelector model;
  v1::ListedSession session;

  // "enwiki/1".
  std::string model_name() const;
};

// The sessions of the model; of all language models that the server has if it is not named. Those of all clients, or
// the caller's own. A session that versions of a model share comes once. Errors: those of the calls.
absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners);

struct DrainOptions {
  v1::ModelSelector model;
  // How long it may take.
  absl::Duration timeout = absl::InfiniteDuration();
  // Called with the number of sessions each time before some are moved.
  std::function<void(int64_t sessions)> on_sessions = [](auto) {};
  // Called after each move. One call at a time.
  std::function<void()> on_moved = [] {};
};

struct DrainResult {
  struct Left {
    SessionOfModel session;
    absl::Status why;
  };

  int64_t moved = 0;
  int64_t bytes = 0;  // of those that were moved
  std::vector<Left> left;
  absl::Duration elapsed = absl::ZeroDuration();
};

// Moves the model's sessions of all clients to another server. A few move at a time, those that were used last first.
// Sessions in use are waited for, and what failed in a way that may pass is tried again, until none is left that may be
// moved, or the time is over, or one of the clients was cancelled: then both are, so they are of no use afterwards.
//
// Each session passes through in pieces: little of it is here at a time. Nothing is lost: a session ends at the one
// server once the other has it.
//
// Errors: if the server does not say which sessions there are.
absl::StatusOr<DrainResult> DrainSessions(Client& from, Client& to, const DrainOptions& options);

}  // namespace longshort::client
