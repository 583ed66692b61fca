#include "server/handlers/traced_request.h"

#include "server/admission/traced_call.h"

namespace longshort {

void TraceGeneration(CallRecord& record, const GenerateCall& call, const GenerationPlan& plan) {
  TracedCall& trace = record.trace();
  if (!trace.recorded()) return;
  const GenerationRequest& request = plan.requests.front();
  const SamplingOptions& sampling = request.sampling;
  trace.Set("gen_ai.request.max_tokens", request.max_tokens);
  trace.Set("gen_ai.request.temperature", sampling.temperature);
  trace.Set("gen_ai.request.top_p", sampling.top_p);
  if (sampling.top_k > 0) trace.Set("gen_ai.request.top_k", static_cast<double>(sampling.top_k));
  if (sampling.frequency_penalty != 0) trace.Set("gen_ai.request.frequency_penalty", sampling.frequency_penalty);
  if (sampling.presence_penalty != 0) trace.Set("gen_ai.request.presence_penalty", sampling.presence_penalty);
  if (call.seed.has_value()) trace.Set("gen_ai.request.seed", static_cast<int64_t>(*call.seed));
  const auto completions = static_cast<int64_t>(plan.requests.size());
  if (completions > 1) trace.Set("gen_ai.request.choice.count", completions);
}

}  // namespace longshort
