// ClassifyImage: each image is a request to the engine; the call ends when all have, whatever became of each.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/call_environment.h"

namespace longshort {

grpc::ServerUnaryReactor* ClassifyImage(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

}  // namespace longshort
