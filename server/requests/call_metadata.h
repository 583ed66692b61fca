// What the metadata of a call says of it, beside its message.
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/statusor.h"
#include "core/requests/request_context.h"

namespace longshort {

// The call's RequestContext: `x-request-id` (drawn unless it is sane), `x-client-id`, `x-priority`, and the deadline.
// Whatever is wrong with them, the context is usable; `status` then says what to answer.
struct CallMetadata {
  RequestContext context;
  absl::Status status;  // INVALID_ARGUMENT naming the metadata, its value and what it may be
};

CallMetadata ReadCallMetadata(const grpc::CallbackServerContext& context);

}  // namespace longshort
