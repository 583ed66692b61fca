// The paths of the Connect protocol: /package.Service/Method.
#pragma once

#include <vector>

#include "server/admission/call_environment.h"
#include "server/http/http_front.h"
#include "server/rpc/rpc.h"

namespace longshort::server {

// Serves these RPCs, of whatever service. Both arguments must outlive the front and its calls.
HttpFront ConnectFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

}  // namespace longshort::server
