// Tells which sessions there are.
#pragma once

#include "absl/status/statusor.h"
#include "server/admission/call_record.h"
#include "server/calls/session_list.h"

namespace longshort {

// Errors: as CallRecord::FindLanguageModel; INVALID_ARGUMENT for a page that is none; PERMISSION_DENIED if all owners'
// are wanted without the scope `manage`.
absl::StatusOr<SessionList> ListSessions(CallRecord& record, const ListSessionsCall& call);

}  // namespace longshort
