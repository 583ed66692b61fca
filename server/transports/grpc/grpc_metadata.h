// The metadata of a gRPC call: reads the caller's metadata, and writes the server's trailing metadata.
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "server/call/call_record.h"

namespace longshort::server {

struct CallMetadataOptions {
  // Whether to read the client's certificate, and the authority by which the client addressed the server.
  bool certificates = false;
  bool authority = false;
};

// Reads the origin and the deadline of a gRPC call. Without `authorization` it also reads the client's certificate, if
// the options say so.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options);

// Puts the call's id, the server's load and, for a refusal, the retry delay into the trailing metadata. `status` is the
// result of CallRecord::Finish. Returns the status for gRPC.
grpc::Status SetTrailingMetadata(const absl::Status& status, const CallRecord& record,
                                 grpc::CallbackServerContext& context);

}  // namespace longshort::server
