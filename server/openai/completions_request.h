// Reads requests of OpenAI's completions. Errors are INVALID_ARGUMENT in OpenAI's words, also for fields that the API
// has and this server has not.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/openai/messages.pb.h"

namespace longshort::server {

// Reads the body of POST /v1/completions.
absl::StatusOr<openai::CompletionsRequest> ReadCompletionsRequest(std::string_view body);

// The first field that an error's message names as a word of its own; most errors begin with it. An unknown field is in
// quotes.
std::optional<std::string_view> FieldIn(std::string_view message);

}  // namespace longshort::server
