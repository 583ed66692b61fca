// A GenerateCall as requests to the engine: one for each completion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/generation_request.h"
#include "core/requests/request_context.h"
#include "core/sampling/sampling_options.h"
#include "server/calls/call_names.h"
#include "server/calls/generate_call.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

struct GenerationPlan {
  // By completion index; equal but for sampling.completion. All share the context that was given.
  std::vector<core::GenerationRequest> requests;
  uint64_t seed = 0;
  // What each completion's text begins with: the prompt's bytes with echo, otherwise nothing.
  std::string echo;
  // Whether tokens are described to the client: the generated ones, and with echo the prompt's.
  bool describe_tokens = false;
  bool return_raw = false;
};

// A call's sampling as the engine wants it: equal options of equal calls. The seed stays as it is.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit; NaN is outside every range.
absl::StatusOr<core::SamplingOptions> CheckSampling(core::SamplingOptions sampling, int64_t vocabulary_size,
                                                    const RequestLimits& limits, const CallNames& names);

// Errors: INVALID_ARGUMENT naming the field, its value and the limit.
absl::StatusOr<GenerationPlan> PlanGeneration(const GenerateCall& call, const core::ServedLanguageModel& model,
                                              const RequestLimits& limits, const CallNames& names,
                                              const core::RequestContext& context);

// Whether all completions fit in one message, as an answer that is not streamed must.
// Errors: INVALID_ARGUMENT naming the tokens and the limit.
absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits, const CallNames& names);

}  // namespace longshort::server
