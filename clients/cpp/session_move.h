// Moves one session from a server to another.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "clients/cpp/client.h"
#include "clients/cpp/session_list.h"

namespace longshort {

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
