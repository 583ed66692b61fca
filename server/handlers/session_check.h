// The session that a call names.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/session/session_reference.h"
#include "server/calls/call_names.h"

namespace longshort {

// Errors: INVALID_ARGUMENT for an id that is none.
absl::Status CheckSessionId(const std::string& id, const CallNames& names);
// Errors: also for less than 0 expected tokens.
absl::Status CheckSession(const SessionReference& session, const CallNames& names);

}  // namespace longshort
