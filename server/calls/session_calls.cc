#include "server/calls/session_calls.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/calls/call_names.h"

namespace longshort::server {
namespace {

bool IsNameOrEmpty(const std::string& text) { return text.empty() || IsName(text); }

}  // namespace

std::string SessionOwner::name() const {
  return identity.has_value() ? absl::StrCat("/", *identity, "/", client) : client;
}

absl::StatusOr<SessionOwner> ReadSessionOwner(const std::string& name, bool authentication) {
  if (!authentication) {
    if (IsNameOrEmpty(name)) return SessionOwner{.identity = std::nullopt, .client = name};
    return absl::InvalidArgumentError(
        absl::StrCat("the client's name for itself, since this server has no --token-file: ", kNameRule, ", or empty"));
  }
  std::vector<std::string> parts = absl::StrSplit(name, '/');
  if (parts.size() == 3 && parts[0].empty() && IsName(parts[1]) && IsNameOrEmpty(parts[2])) {
    return SessionOwner{.identity = std::move(parts[1]), .client = std::move(parts[2])};
  }
  return absl::InvalidArgumentError("/IDENTITY/CLIENT, since this server has a --token-file; CLIENT may be empty");
}

core::SessionKey KeyOfSession(const SessionOwner& owner, const std::string& id) {
  if (!owner.identity.has_value()) return {.client = owner.client, .id = id};
  return {.client = *owner.identity, .id = owner.client.empty() ? id : absl::StrCat(owner.client, "/", id)};
}

OwnedSession OwnedSessionOf(const core::SessionKey& key, bool authentication) {
  if (!authentication) return {.owner = {.identity = std::nullopt, .client = key.client}, .id = key.id};
  const size_t slash = key.id.find('/');
  if (slash == std::string::npos) return {.owner = {.identity = key.client, .client = ""}, .id = key.id};
  return {.owner = {.identity = key.client, .client = key.id.substr(0, slash)}, .id = key.id.substr(slash + 1)};
}

}  // namespace longshort::server
