// Who asks, as the metadata of a gRPC call says beside its message.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_record.h"

namespace longshort {

struct CallMetadataOptions {
  // Whether certificates of peers matter, and the name by which the client knows the server.
  bool certificates = false;
  bool authority = false;
};

// `x-request-id` (drawn unless it is sane), `x-client-id`, `x-priority`, `authorization`, `traceparent`, `tracestate`,
// and the deadline; of the connection the peer's certificate, if it matters and no `authorization` is there.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, const CallMetadataOptions& options);

}  // namespace longshort
