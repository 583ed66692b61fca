// The session that a request names.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "core/session/session_reference.h"
#include "longshort/v1/types.pb.h"

namespace longshort {

// Nothing if `session` is null. Errors: INVALID_ARGUMENT for an id that is none, and less than 0 tokens.
absl::StatusOr<std::optional<SessionReference>> ReadSession(const v1::Session* session);
absl::Status CheckSessionId(const std::string& field, const std::string& id);

}  // namespace longshort
