// The session that a call names.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/session/session_reference.h"
#include "server/admission/call_record.h"
#include "server/calls/call_names.h"

namespace longshort {

// Errors: INVALID_ARGUMENT for an id that is none.
absl::Status CheckSessionId(const std::string& id, const CallNames& names);
// Errors: also for less than 0 expected tokens.
absl::Status CheckSession(const SessionReference& session, const CallNames& names);
// Makes the session that a call names, if it names one, the caller's own, as the engines know it. To be called once,
// after CheckSession. Errors: PERMISSION_DENIED without the scope `sessions`.
absl::Status TakeSession(const CallRecord& record, std::optional<SessionReference>* session);

}  // namespace longshort
