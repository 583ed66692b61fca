// GenerateStream: each completion is a request to the engine; its text is written as it comes.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/call_environment.h"

namespace longshort {

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerateStream(const CallEnvironment& environment,
                                                           grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request);

}  // namespace longshort
