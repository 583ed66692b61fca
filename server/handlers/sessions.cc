#include "server/handlers/sessions.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/access/scopes.h"
#include "server/calls/call_names.h"
#include "server/calls/session_calls.h"
#include "server/handlers/handlers.h"

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

namespace {

// Reading a page locks the store for some tens of microseconds.
constexpr int64_t kMaxOfPage = 256;

// A page's token is the key of the last session on the previous page.
std::string TokenOf(const core::SessionKey& key) { return absl::StrCat(key.client, "/", key.id); }

std::optional<core::SessionKey> KeyOf(const std::string& token) {
  const size_t slash = token.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return core::SessionKey{.client = token.substr(0, slash), .id = token.substr(slash + 1)};
}

}  // namespace

absl::StatusOr<SessionList> ListSessions(CallRecord& record, const ListSessionsCall& call) {
  const CallNames& names = record.names();
  const bool authentication = record.session_owner().identity.has_value();
  std::optional<std::string> client;
  if (call.all_owners) {
    LS_RETURN_IF_ERROR(
        record.caller().CheckScope(Scope::kManage, absl::StrCat(names.rpc(), " with ", names.Of("all_owners"))));
  } else {
    client = KeyOfSession(record.session_owner(), "").client;
  }
  LS_RETURN_IF_ERROR(
      CheckFieldRange([&] { return names.Of("page_size"); }, call.page_size, 0, std::numeric_limits<int32_t>::max()));
  std::optional<core::SessionKey> after;
  if (!call.page_token.empty()) {
    after = KeyOf(call.page_token);
    if (!after.has_value() || (client.has_value() && after->client != *client)) {
      return FieldError(names.Of("page_token"), Quoted(call.page_token), "the token of the previous page");
    }
  }
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                      record.FindLanguageModel(call.model));
  const int64_t max = call.page_size == 0 ? kMaxOfPage : std::min(call.page_size, kMaxOfPage);
  core::SessionStore::Page page = model->engine->sessions().List(client, after, static_cast<int>(max));
  SessionList list;
  if (page.next.has_value()) list.next_page_token = TokenOf(*page.next);
  for (const core::SessionStore::Listed& listed : page.sessions) {
    OwnedSession session = OwnedSessionOf(listed.key, authentication);
    list.sessions.push_back({.owner = session.owner.name(),
                             .id = std::move(session.id),
                             .tokens = listed.tokens,
                             .idle = listed.idle,
                             .in_use = listed.in_use});
  }
  return list;
}

absl::Status CloseSession(CallRecord& record, const CloseSessionCall& call) {
  LS_RETURN_IF_ERROR(CheckSessionId(call.session_id, record.names(), "session_id"));
  LS_RETURN_IF_ERROR(CheckExpectedTokens(call.closing.expected_tokens, record.names(), "expected_tokens"));
  LS_ASSIGN_OR_RETURN(const core::SessionKey key, FindSessionKey(record, call.owner, call.session_id));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<const core::ServedLanguageModel> model,
                      record.FindLanguageModel(call.model));
  return model->engine->sessions().Close(key, call.closing);
}

}  // namespace longshort::server
