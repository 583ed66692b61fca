// The RPCs of the Open Inference Protocol.
#pragma once

#include <memory>
#include <vector>

#include "server/call/rpc.h"

namespace longshort::server {

std::vector<Rpc> OpenInferenceRpcs();

// The work of ModelStreamInfer.
std::unique_ptr<CallWork> MakeInferStream(Call& call);

}  // namespace longshort::server
