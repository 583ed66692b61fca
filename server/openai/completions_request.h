// Requests of OpenAI's completions. Errors are INVALID_ARGUMENT in OpenAI's words, also for fields that this server
// does not support.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "base/memory_meter.h"
#include "server/calls/request_limits.h"
#include "server/openai/messages.pb.h"
#include "server/openai/request_body.h"

namespace longshort::server {

// The value of truncate_prompt_tokens that keeps as many tokens as the server takes.
inline constexpr int kMostTokens = -1;

const RequestBody& CompletionsBody();

// Reads the body of POST /v1/completions. The meter counts what the request takes, and may be full.
absl::Status ReadCompletionsRequest(std::string_view body, const RequestLimits& limits, MemoryMeter& meter,
                                    openai::CompletionsRequest& request);

}  // namespace longshort::server
