// The RPCs of longshort.v1.
#pragma once

#include <vector>

#include "server/rpc/rpc.h"

namespace longshort {

std::vector<Rpc> LongshortV1Rpcs();

}  // namespace longshort
