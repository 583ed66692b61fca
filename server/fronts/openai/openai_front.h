// The paths /v1/... of OpenAI's API, the tokenizer's, /predict and /classify, and the RPC rows that serve them.
#pragma once

#include <vector>

#include "server/call/call_environment.h"
#include "server/call/rpc.h"
#include "server/fronts/json/openapi.h"
#include "server/transports/http/http_front.h"

namespace longshort::server {

// Calls by these paths only: gRPC does not serve them.
std::vector<Rpc> OpenAiRpcs();

// `rpcs`: OpenAiRpcs(). Both arguments must outlive the front and its calls.
HttpFront OpenAiFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// The room's paths for /openapi.json.
HttpDescription OpenAiDescription();

}  // namespace longshort::server
