// Lists and closes sessions.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/session_calls.h"

namespace longshort {

// Errors: as CallRecord::FindLanguageModel; INVALID_ARGUMENT for an invalid page size or token; PERMISSION_DENIED if
// `all_owners` is set without the scope `manage`.
absl::StatusOr<SessionList> ListSessions(CallRecord& record, const ListSessionsCall& call);

// Errors: as CheckSessionId, FindSessionKey, CallRecord::FindLanguageModel and LanguageModelEngine::CloseSession;
// INVALID_ARGUMENT for negative expected tokens.
absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call);

}  // namespace longshort
