// ExportSession.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/admission/call_environment.h"

namespace longshort {

grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportSession(const CallEnvironment& environment,
                                                          grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request);

}  // namespace longshort
