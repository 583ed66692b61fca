// ScoreTexts.
#pragma once

#include "server/rpc/score_stream.h"

namespace longshort {

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ScoreTexts(const CallEnvironment& environment,
                                                                        grpc::CallbackServerContext* context);

}  // namespace longshort
