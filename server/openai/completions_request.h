// Reads requests of OpenAI's completions. Errors are INVALID_ARGUMENT in OpenAI's words, also for fields that this
// server does not support.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "server/openai/messages.pb.h"

namespace longshort::server {

// Reads the body of POST /v1/completions.
absl::StatusOr<openai::CompletionsRequest> ReadCompletionsRequest(std::string_view body);

}  // namespace longshort::server
