// The paths of the Open Inference Protocol's REST form: /v2 and all below.
#pragma once

#include <vector>

#include "server/admission/call_environment.h"
#include "server/http/http_front.h"
#include "server/http_rpc/openapi.h"
#include "server/rpc/rpc.h"

namespace longshort::server {

// Serves OpenInferenceRpcs, `rpcs`. Both arguments must outlive the front and its calls.
HttpFront OpenInferenceFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// These paths for /openapi.json, without those that this server always refuses.
HttpDescription OpenInferenceDescription();

}  // namespace longshort::server
