// ScoreText: each document is a request to the engine; the call ends when all have.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/rpc/call_environment.h"

namespace longshort {

grpc::ServerUnaryReactor* ScoreText(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

}  // namespace longshort
