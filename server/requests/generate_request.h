// A GenerateRequest of the contract as requests to the engine: one for each completion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/model_registry.h"
#include "core/requests/generation_request.h"
#include "core/requests/request_context.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/request_limits.h"

namespace longshort {

struct GenerationPlan {
  // By completion index; equal but for sampling.completion. All share the context that was given.
  std::vector<GenerationRequest> requests;
  uint64_t seed = 0;
  // What each completion's text begins with: the prompt's bytes with echo, otherwise nothing.
  std::string echo;
  // Describe tokens to the client: the generated ones, and the prompt's.
  bool describe_tokens = false;
  bool describe_prompt = false;
  bool return_raw = false;
};

// Errors: INVALID_ARGUMENT naming the field, its value and the limit.
absl::StatusOr<GenerationPlan> ReadGenerateRequest(const v1::GenerateRequest& request, const ServedLanguageModel& model,
                                                   const RequestLimits& limits, const RequestContext& context);

// Whether all completions fit in one message, as an answer that is not streamed must.
// Errors: INVALID_ARGUMENT naming the tokens and the limit.
absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits);

}  // namespace longshort
