// Reads what a call's metadata, or its HTTP fields, say of the caller, and writes what they say of the call's end.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "server/call/call_record.h"

namespace longshort::server {

// Finds the values of a key (in lower case) in the caller's metadata, joined by commas; nullopt if there is none.
using FindMetadata = std::function<std::optional<std::string>(const char* key)>;

// Reads `x-request-id` (random if missing or invalid), `x-client-id`, `x-priority`, `authorization`, `traceparent` and
// `tracestate`.
CallOrigin ReadOrigin(const FindMetadata& find, absl::Time deadline);

// A longer authority is cut, because traces wait for the collector.
inline constexpr size_t kMaxAuthorityBytes = 256;

// Key of the call's id in the initial and in the trailing metadata.
inline constexpr char kIdKey[] = "x-request-id";

// A serialized google.rpc.RetryInfo.
std::string SerializeRetryInfo(absl::Duration retry_after);

// Says what a loading did, for metadata: "loaded", "reloaded" or "unchanged".
const char* OutcomeName(core::LoadOutcome outcome);

}  // namespace longshort::server
