// The sessions of a server: which there are, and how one goes to another server.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/client.h"

namespace longshort {

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

struct MovedSession {
  // OK: it goes on at the other server, or has ended meanwhile. Otherwise the first server has it yet.
  absl::Status status = absl::OkStatus();
  // Whether it was moved.
  bool moved = false;
  // Of its data.
  int64_t bytes = 0;
};

// Gives the session to `to` under the id that it has, for its owner, and when that has it ends it at `from` as moved.
// It passes through in pieces: little of it is here at a time. Errors: those of the calls; ABORTED if it went on
// meanwhile at `from`.
MovedSession MoveSession(Client& from, Client& to, const SessionOfModel& session);

}  // namespace longshort
