// ImportSession.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_environment.h"

namespace longshort {

grpc::ServerReadReactor<grpc::ByteBuffer>* ImportSession(const CallEnvironment& environment,
                                                         grpc::CallbackServerContext* context,
                                                         grpc::ByteBuffer* response);

}  // namespace longshort
