// Checks of the sessions that calls name, and their keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/session/session.h"
#include "core/session/session_store.h"
#include "server/call/call_record.h"
#include "server/calls/call_names.h"

namespace longshort::server {

// Errors: INVALID_ARGUMENT with `field`, for an invalid id or a negative number of tokens.
absl::Status CheckSessionId(const std::string& id, const CallNames& names, std::string_view field);
absl::Status CheckExpectedTokens(std::optional<int64_t> tokens, const CallNames& names, std::string_view field);
// Both checks, for the field `session`.
absl::Status CheckSession(const core::SessionReference& session, const CallNames& names);
// Replaces the id of the call's session, if it has one, by the caller's id for the engines. Call it once, after
// CheckSession. Errors: PERMISSION_DENIED without the scope `sessions`.
absl::Status TakeSession(const CallRecord& record, std::optional<core::SessionReference>* session);
// The engines' key of session `id` of the caller, or of `owner` (server/calls/session_calls.h).
// Errors: INVALID_ARGUMENT if `owner` is malformed; PERMISSION_DENIED without the scope `manage` for an owner of
// another identity.
absl::StatusOr<core::SessionKey> FindSessionKey(const CallRecord& record, const std::optional<std::string>& owner,
                                                const std::string& id);

// Whether the caller may import a session for its original owner. Errors: PERMISSION_DENIED without the scope `manage`.
absl::Status CheckKeepsOwner(const CallRecord& record);
// The engines' key of an imported session with this owner in its data. Errors: FAILED_PRECONDITION if the owner's name
// does not have the form for this server.
absl::StatusOr<core::SessionKey> KeyOfImported(const CallRecord& record, const std::string& owner,
                                               const std::string& id);

}  // namespace longshort::server
