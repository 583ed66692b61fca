// Turns a GenerateCall into engine requests, one for each completion.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/registry/served_model.h"
#include "core/requests/language_model_requests.h"
#include "core/requests/request_context.h"
#include "core/sampling/sampler.h"
#include "server/calls/call_names.h"
#include "server/calls/generate_call.h"
#include "server/calls/request_limits.h"

namespace longshort::server {

struct GenerationPlan {
  // By completion index. Those of one prompt are equal except for sampling.completion. All share the given context.
  std::vector<core::GenerationRequest> requests;
  int64_t completions = 1;  // of each prompt
  uint64_t seed = 0;
  // By prompt, the start of its completions' text: the prompt's bytes if echo is set, otherwise empty.
  std::vector<std::string> echoes;
  // Whether the answer describes tokens: the generated ones, and with echo the prompt's.
  bool describe_tokens = false;
  bool return_raw = false;

  // Upper bound of the answer's bytes, unless it streams.
  int64_t AnswerBytes() const;
};

// The call's sampling options in the engine's canonical form, in which equal calls have equal options. Keeps the seed.
// Errors: INVALID_ARGUMENT with the field, its value and the limit; NaN is outside every range.
absl::StatusOr<core::SamplingOptions> CheckSampling(core::SamplingOptions sampling, int64_t vocabulary_size,
                                                    const RequestLimits& limits, const CallNames& names);

// Errors: INVALID_ARGUMENT with the field, its value and the limit.
absl::StatusOr<GenerationPlan> PlanGeneration(const GenerateCall& call, const core::ServedLanguageModel& model,
                                              const RequestLimits& limits, const CallNames& names,
                                              const core::RequestContext& context);

// Checks that all completions fit into one message, as a unary answer must.
// Errors: INVALID_ARGUMENT with the number of tokens and the limit.
absl::Status CheckFitsOneAnswer(const GenerationPlan& plan, const RequestLimits& limits, const CallNames& names);

}  // namespace longshort::server
