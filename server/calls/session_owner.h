// The owner of a session: its name for clients and other servers, and its key in the engines.
//
// - Without authentication the owner is the client's own name for itself; "" if the client gives none.
// - With authentication the owner is "/IDENTITY/CLIENT". CLIENT may be empty. It only separates the sessions of one
//   identity.
//
// Names of clients, sessions and identities contain no slash (IsName). So no client can choose a name that gives it an
// owner of the other form, or the session of another owner.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/session/session_store.h"

namespace longshort::server {

struct SessionOwner {
  // Unset without authentication.
  std::optional<std::string> identity;
  // The client's own name for itself; may be empty.
  std::string client;

  std::string name() const;
};

// Parses the owner's name on a server with or without authentication.
// Errors: INVALID_ARGUMENT that completes "...; it must be ", if the name does not have the form for such a server.
absl::StatusOr<SessionOwner> ReadSessionOwner(const std::string& name, bool authentication);

// The key by which the engines know the owner's session `id`.
core::SessionKey KeyOfSession(const SessionOwner& owner, const std::string& id);

// The inverse of KeyOfSession.
struct OwnedSession {
  SessionOwner owner;
  std::string id;
};
OwnedSession OwnedSessionOf(const core::SessionKey& key, bool authentication);

}  // namespace longshort::server
