// The session that a call names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/session/session.h"
#include "core/session/session_store.h"
#include "server/admission/call_record.h"
#include "server/calls/call_names.h"

namespace longshort::server {

// Errors: INVALID_ARGUMENT, naming `field`, for an id that is none, and for less than 0 tokens.
absl::Status CheckSessionId(const std::string& id, const CallNames& names, std::string_view field);
absl::Status CheckExpectedTokens(std::optional<int64_t> tokens, const CallNames& names, std::string_view field);
// Both, of the field `session`.
absl::Status CheckSession(const core::SessionReference& session, const CallNames& names);
// Makes the session that a call names, if it names one, the caller's own, as the engines know it. To be called once,
// after CheckSession. Errors: PERMISSION_DENIED without the scope `sessions`.
absl::Status TakeSession(const CallRecord& record, std::optional<core::SessionReference>* session);
// The session of this id as the engines know it: the caller's own, or the owner's (server/calls/session_owner.h).
// Errors: INVALID_ARGUMENT for an owner that nobody is; PERMISSION_DENIED without the scope `manage` for another
// identity's.
absl::StatusOr<core::SessionKey> FindSessionKey(const CallRecord& record, const std::optional<std::string>& owner,
                                                const std::string& id);

// Whether the caller may import a session that stays its owner's. Errors: PERMISSION_DENIED without the scope `manage`.
absl::Status CheckKeepsOwner(const CallRecord& record);
// How the engines are to know an imported session, whose data name this owner. Errors: FAILED_PRECONDITION if nobody on
// this server is called so.
absl::StatusOr<core::SessionKey> KeyOfImported(const CallRecord& record, const std::string& owner,
                                               const std::string& id);

}  // namespace longshort::server
