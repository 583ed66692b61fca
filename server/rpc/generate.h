// Generate: each completion is a request to the engine; the call ends, with all their texts, when all have.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/call_environment.h"

namespace longshort {

grpc::ServerUnaryReactor* Generate(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

}  // namespace longshort
