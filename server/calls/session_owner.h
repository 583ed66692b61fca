// Whose a session is: as clients and other servers read it, and as the engines know it.
//
// - Without authentication an owner is what the client calls himself; "" are those who say nothing.
// - With it an owner is "/IDENTITY/CLIENT". CLIENT, which may be empty, only tells the identity's own sessions apart.
//
// No name of a client, a session or an identity has a slash (IsName), so nothing that is said makes one out of another:
// neither an owner of the other kind, nor somebody else's session.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/session/session_store.h"

namespace longshort::server {

struct SessionOwner {
  // Nothing without authentication.
  std::optional<std::string> identity;
  // What the client calls himself; may be empty.
  std::string client;

  std::string name() const;
};

// The owner of this name, on a server with or without authentication. Errors: INVALID_ARGUMENT, completing
// "...; it must be ", if nobody on such a server is called so.
absl::StatusOr<SessionOwner> ReadSessionOwner(const std::string& name, bool authentication);

// How the engines know the owner's session of this id.
core::SessionKey KeyOfSession(const SessionOwner& owner, const std::string& id);

// The other way round.
struct OwnedSession {
  SessionOwner owner;
  std::string id;
};
OwnedSession OwnedSessionOf(const core::SessionKey& key, bool authentication);

}  // namespace longshort::server
