// Ends a session.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "server/admission/call_record.h"
#include "server/calls/model_reference.h"

namespace longshort {

// Errors: as CheckSessionId, CallRecord::FindLanguageModel and LanguageModelEngine::CloseSession.
absl::Status CloseSession(CallRecord& record, const ModelReference& model, const std::string& session_id);

}  // namespace longshort
