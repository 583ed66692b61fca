// How a text goes on, as the parameters of a request say it: by the names of longshort.v1's fields.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/calls/generate_call.h"
#include "server/open_inference_v2/parameters.h"

namespace longshort {

absl::Span<const std::string_view> GenerationParameterNames();

// Without model and prompt. `stop` is one stop string, or a JSON list of them. Ranges are not checked.
// Errors: INVALID_ARGUMENT naming the parameter, its value and what it must be.
absl::StatusOr<GenerateCall> ReadGenerationParameters(const Parameters& parameters);

}  // namespace longshort
