// Calls about sessions and their results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/session/session_store.h"
#include "server/calls/call_parts.h"

namespace longshort::server {

struct ListSessionsCall {
  ModelReference model;
  bool all_owners = false;
  // 0: as many as fit into an answer.
  int64_t page_size = 0;
  // From the previous page; empty for the first page.
  std::string page_token;
};

struct ListedSession {
  std::string owner;
  std::string id;
  int64_t tokens = 0;
  absl::Duration idle = absl::ZeroDuration();
  bool in_use = false;
};

struct SessionList {
  std::vector<ListedSession> sessions;
  // Empty if there is no further page.
  std::string next_page_token;
};

struct CloseSessionCall {
  ModelReference model;
  std::string session_id;
  // The session's owner (server/calls/session_calls.h). Default: the caller.
  std::optional<std::string> owner = std::nullopt;
  core::SessionClosing closing = {};
};

// The owner of a session: its name for clients and other servers, and its key in the engines.
//
// - Without authentication the owner is the client's own name for itself; "" if the client gives none.
// - With authentication the owner is "/IDENTITY/CLIENT". CLIENT may be empty. It only separates the sessions of one
//   identity.
//
// Names of clients, sessions and identities contain no slash (IsName). So no client can choose a name that gives it an
// owner of the other form, or the session of another owner.

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
