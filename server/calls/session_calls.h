// Calls about sessions and their results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  // The session's owner (server/calls/session_owner.h). Default: the caller.
  std::optional<std::string> owner = std::nullopt;
  core::SessionClosing closing = {};
};

}  // namespace longshort::server
