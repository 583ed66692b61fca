// Ends a session.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/session/session_store.h"
#include "server/admission/call_record.h"
#include "server/calls/model_reference.h"

namespace longshort {

struct CloseSessionCall {
  ModelReference model;
  std::string session_id;
  // Whose (server/calls/session_owner.h); the caller's own without one.
  std::optional<std::string> owner = std::nullopt;
  SessionClosing closing = {};
};

// Errors: as CheckSessionId, FindSessionKey, CallRecord::FindLanguageModel and LanguageModelEngine::CloseSession;
// INVALID_ARGUMENT for less than 0 expected tokens.
absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call);

}  // namespace longshort
