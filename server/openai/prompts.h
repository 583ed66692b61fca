// The texts of a request: a string, a list of strings, a list of token ids, or a list of such lists.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/calls/call_parts.h"
#include "server/calls/request_limits.h"
#include "server/openai/json_request.h"
#include "server/openai/messages.pb.h"

namespace longshort::server {

// The limit of a field of at most `most` texts.
inline JsonListLimit LimitOfTexts(std::string_view field, int64_t most, const RequestLimits& limits) {
  return {.key = field, .elements = most, .numbers = limits.prompt_tokens};
}

// Reads the texts in `field`. Errors: INVALID_ARGUMENT with the field, its index and what it must be.
absl::Status ReadPrompts(JsonRequest& json, const std::string& field,
                         google::protobuf::RepeatedPtrField<openai::Prompt>& prompts);

// Reads TEI's `truncate`. The server cuts texts at their end only: to the left, it cuts none. Errors: INVALID_ARGUMENT.
absl::Status ReadTruncation(JsonRequest& json, bool& truncate);

// Views the prompt.
TextInput FromMessage(const openai::Prompt& prompt);

}  // namespace longshort::server
