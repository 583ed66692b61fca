// OpenAI's JSON: requests and answers of /v1/completions and /v1/models, and its errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http_rpc/http_codec.h"
#include "server/openai/messages.pb.h"

namespace longshort::server {

// Reads the body of POST /v1/completions. Errors: INVALID_ARGUMENT in OpenAI's words, also for fields that the API has
// and this server has not.
absl::StatusOr<openai::CompletionsRequest> ReadCompletionsRequest(std::string_view body);

// An error as OpenAI's JSON, with its HTTP status.
HttpResponse OpenAiError(const absl::Status& status);
// 404 for a path.
HttpResponse UnknownUrl(std::string_view message);

// For CompletionsRequest and Completions; `max_body_bytes`: of a body, unpacked.
std::unique_ptr<HttpCodec> MakeCompletionsCodec(int64_t max_body_bytes);

// For ModelsRequest and ModelsAnswer: the list of all models, or with a name the description of one. `created`, a Unix
// time, stands for the time when each model was made.
std::unique_ptr<HttpCodec> MakeModelsCodec(std::string name, int64_t created);

}  // namespace longshort::server
