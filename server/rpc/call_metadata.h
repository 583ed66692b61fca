// The metadata of a gRPC call: who calls, and what the client is told at the end beside the status.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_record.h"

namespace longshort::server {

struct CallMetadataOptions {
  // Whether certificates of peers matter, and the name by which the client knows the server.
  bool certificates = false;
  bool authority = false;
};

// `x-request-id` (drawn unless it is sane), `x-client-id`, `x-priority`, `authorization`, `traceparent`, `tracestate`,
// and the deadline; of the connection the peer's certificate, if it matters and no `authorization` is there.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options);

// In the initial and in the trailing metadata.
inline constexpr char kIdKey[] = "x-request-id";

// Puts the call's id, the server's load, and when to come back after a refusal into the trailing metadata. `status` is
// what CallRecord::Finish has returned. Returns the status for gRPC.
grpc::Status SetTrailingMetadata(const absl::Status& status, const CallRecord& record,
                                 grpc::CallbackServerContext& context);

}  // namespace longshort::server
