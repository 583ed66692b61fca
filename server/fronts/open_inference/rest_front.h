// The paths of the Open Inference Protocol's REST form: /v2 and all below.
#pragma once

#include <vector>

#include "server/call/call_environment.h"
#include "server/call/rpc.h"
#include "server/fronts/json/openapi.h"
#include "server/transports/http/http_front.h"

namespace longshort::server {

// Serves OpenInferenceRpcs, `rpcs`. Both arguments must outlive the front and its calls.
HttpFront OpenInferenceFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// These paths for /openapi.json, without those that this server always refuses.
HttpDescription OpenInferenceDescription();

}  // namespace longshort::server
