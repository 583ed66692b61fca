#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/access/scopes.h"
#include "server/calls/field_error.h"
#include "server/calls/session_owner.h"
#include "server/handlers/handlers.h"
#include "server/handlers/session_check.h"

namespace longshort::server {
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
