// The room's paths for /openapi.json, without those of the tokenizer, which only evaluation harnesses call.
#pragma once

#include <vector>

#include "server/http_rpc/openapi.h"

namespace longshort::server {

std::vector<HttpOperation> OpenAiOperations();

}  // namespace longshort::server
