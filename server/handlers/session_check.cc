#include "server/handlers/session_check.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/access/scopes.h"
#include "server/calls/field_error.h"
#include "server/calls/names.h"

namespace longshort {

absl::Status CheckSessionId(const std::string& id, const CallNames& names) {
  return IsName(id) ? absl::OkStatus() : FieldError(names.Of(CallField::kSessionId), Quoted(id), kNameRule);
}

absl::Status CheckSession(const SessionReference& session, const CallNames& names) {
  LS_RETURN_IF_ERROR(CheckSessionId(session.id, names));
  if (session.expected_tokens.value_or(0) >= 0) return absl::OkStatus();
  return FieldError(names.Of(CallField::kExpectedTokens), *session.expected_tokens, "at least 0");
}

absl::Status TakeSession(const CallRecord& record, std::optional<SessionReference>* session) {
  if (!session->has_value()) return absl::OkStatus();
  const CallNames& names = record.names();
  LS_RETURN_IF_ERROR(
      record.caller().CheckScope(Scope::kSessions, absl::StrCat(names.rpc(), " with ", names.Of(CallField::kSession))));
  (*session)->id = record.SessionIdOf((*session)->id);
  return absl::OkStatus();
}

}  // namespace longshort
