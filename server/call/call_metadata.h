// The metadata of a gRPC call: reads the caller's metadata, and writes the server's trailing metadata.
#pragma once

#include <grpcpp/grpcpp.h>

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

struct CallMetadataOptions {
  // Whether to read the client's certificate, and the authority by which the client addressed the server.
  bool certificates = false;
  bool authority = false;
};

// Reads the origin and the deadline of a gRPC call. Without `authorization` it also reads the client's certificate, if
// the options say so.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options);

// Key of the call's id in the initial and in the trailing metadata.
inline constexpr char kIdKey[] = "x-request-id";

// A serialized google.rpc.RetryInfo.
std::string SerializeRetryInfo(absl::Duration retry_after);

// Says what a loading did, for metadata: "loaded", "reloaded" or "unchanged".
const char* OutcomeName(core::LoadOutcome outcome);

// Puts the call's id, the server's load and, for a refusal, the retry delay into the trailing metadata. `status` is the
// result of CallRecord::Finish. Returns the status for gRPC.
grpc::Status SetTrailingMetadata(const absl::Status& status, const CallRecord& record,
                                 grpc::CallbackServerContext& context);

}  // namespace longshort::server
