// Who asks, as the metadata of a gRPC call says beside its message.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_record.h"

namespace longshort {

// `x-request-id` (drawn unless it is sane), `x-client-id`, `x-priority`, `authorization`, and the deadline; of the
// connection the peer's certificate, if `certificates` says that it matters and no `authorization` is there.
CallOrigin ReadCallMetadata(const grpc::CallbackServerContext& context, bool certificates);

}  // namespace longshort
