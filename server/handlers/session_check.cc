#include "server/handlers/session_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/access/scopes.h"
#include "server/calls/field_error.h"
#include "server/calls/session_owner.h"

namespace longshort::server {

absl::Status CheckSessionId(const std::string& id, const CallNames& names, std::string_view field) {
  return IsName(id) ? absl::OkStatus() : FieldError(names.Of(field), Quoted(id), kNameRule);
}

absl::Status CheckExpectedTokens(std::optional<int64_t> tokens, const CallNames& names, std::string_view field) {
  return tokens.value_or(0) >= 0 ? absl::OkStatus() : FieldError(names.Of(field), *tokens, "at least 0");
}

absl::Status CheckSession(const core::SessionReference& session, const CallNames& names) {
  LS_RETURN_IF_ERROR(CheckSessionId(session.id, names, "session.id"));
  return CheckExpectedTokens(session.expected_tokens, names, "session.expected_tokens");
}

absl::Status TakeSession(const CallRecord& record, std::optional<core::SessionReference>* session) {
  if (!session->has_value()) return absl::OkStatus();
  const CallNames& names = record.names();
  LS_RETURN_IF_ERROR(
      record.caller().CheckScope(Scope::kSessions, absl::StrCat(names.rpc(), " with ", names.Of("session"))));
  core::SessionKey key = KeyOfSession(record.session_owner(), (*session)->id);
  (*session)->owner = std::move(key.client);
  (*session)->id = std::move(key.id);
  return absl::OkStatus();
}

absl::StatusOr<core::SessionKey> FindSessionKey(const CallRecord& record, const std::optional<std::string>& owner,
                                                const std::string& id) {
  if (!owner.has_value()) return KeyOfSession(record.session_owner(), id);
  const CallNames& names = record.names();
  const absl::StatusOr<SessionOwner> read = ReadSessionOwner(*owner, record.session_owner().identity.has_value());
  if (!read.ok()) {
    return FieldError(names.Of("owner"), Quoted(*owner), std::string(read.status().message()));
  }
  if (read->identity != record.session_owner().identity) {
    LS_RETURN_IF_ERROR(
        record.caller().CheckScope(Scope::kManage, absl::StrCat(names.rpc(), " with another's ", names.Of("owner"))));
  }
  return KeyOfSession(*read, id);
}

absl::Status CheckKeepsOwner(const CallRecord& record) {
  const CallNames& names = record.names();
  return record.caller().CheckScope(Scope::kManage,
                                    absl::StrCat(names.rpc(), " with ", names.Of("beginning.keep_owner")));
}

absl::StatusOr<core::SessionKey> KeyOfImported(const CallRecord& record, const std::string& owner,
                                               const std::string& id) {
  const absl::StatusOr<SessionOwner> read = ReadSessionOwner(owner, record.session_owner().identity.has_value());
  if (read.ok()) return KeyOfSession(*read, id);
  return absl::FailedPreconditionError(
      absl::StrCat("the session's owner is ", Quoted(owner), "; here it must be ", read.status().message()));
}

}  // namespace longshort::server
