// Who asks, as the metadata of a gRPC call says beside its message.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_record.h"

namespace longshort {

// `x-request-id` (drawn unless it is sane), `x-client-id`, `x-priority`, and the deadline.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context);

}  // namespace longshort
