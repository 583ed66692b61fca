#include "server/requests/session_reader.h"

#include "base/status_macros.h"
#include "server/requests/field_error.h"
#include "server/requests/names.h"

namespace longshort {

absl::Status CheckSessionId(const std::string& field, const std::string& id) {
  return IsName(id) ? absl::OkStatus() : FieldError(field, Quoted(id), kNameRule);
}

absl::StatusOr<std::optional<SessionReference>> ReadSession(const v1::Session* session) {
  if (session == nullptr) return std::nullopt;
  LS_RETURN_IF_ERROR(CheckSessionId("session.id", session->id()));
  SessionReference reference{.id = session->id(), .must_exist = session->must_exist()};
  if (session->has_expected_tokens()) {
    if (session->expected_tokens() < 0) {
      return FieldError("session.expected_tokens", session->expected_tokens(), "at least 0");
    }
    reference.expected_tokens = session->expected_tokens();
  }
  return reference;
}

}  // namespace longshort
