// The RPCs of the Open Inference Protocol.
#pragma once

#include <vector>

#include "server/rpc/rpc.h"

namespace longshort {

std::vector<Rpc> OpenInferenceRpcs();

}  // namespace longshort
