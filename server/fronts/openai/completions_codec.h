// OpenAI's JSON: requests to /v1/completions and /v1/models, and errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "server/call/rpc.h"
#include "server/calls/request_limits.h"
#include "server/transports/http/http_codec.h"

namespace longshort::server {

// An error as OpenAI's JSON, with its HTTP status.
HttpResponse OpenAiError(const absl::Status& status);
// 404 for a path.
HttpResponse UnknownUrl(std::string_view message);

// A short answer.
CallAnswer ShortAnswer(const nlohmann::ordered_json& json);

// For CompletionsRequest. `limits` must outlive the codec.
std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits);

// For ModelsRequest, which has this name.
std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name);

}  // namespace longshort::server
