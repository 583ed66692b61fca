// The paths /v1/... of OpenAI's API, the tokenizer's, /predict and /classify, and the RPC rows that serve them.
#pragma once

#include <vector>

#include "server/admission/call_environment.h"
#include "server/http/http_front.h"
#include "server/http_rpc/openapi.h"
#include "server/rpc/rpc.h"

namespace longshort::server {

// Calls by these paths only: gRPC does not serve them.
std::vector<Rpc> OpenAiRpcs();

// `rpcs`: OpenAiRpcs(). Both arguments must outlive the front and its calls.
HttpFront OpenAiFront(const CallEnvironment& environment, const std::vector<Rpc>& rpcs);

// The room's paths for /openapi.json.
HttpDescription OpenAiDescription();

}  // namespace longshort::server
