// LoadModel and UnloadModel.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/call_environment.h"

namespace longshort {

grpc::ServerUnaryReactor* LoadModel(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response);
grpc::ServerUnaryReactor* UnloadModel(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

}  // namespace longshort
