// OpenAI's JSON: the answers of /v1/completions and /v1/models, and errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/calls/request_limits.h"
#include "server/http_rpc/http_codec.h"

namespace longshort::server {

// An error as OpenAI's JSON, with its HTTP status.
HttpResponse OpenAiError(const absl::Status& status);
// 404 for a path.
HttpResponse UnknownUrl(std::string_view message);

// For CompletionsRequest and Completions. `limits` must outlive the codec.
std::unique_ptr<HttpCodec> MakeCompletionsCodec(const RequestLimits& limits);

// For ModelsRequest and ModelsAnswer: the list of all models, or with a name the description of one. `created`, a Unix
// time, stands for the time when each model was made.
std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name, int64_t created);

}  // namespace longshort::server
