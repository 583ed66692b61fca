// The engine's results as messages of the contract.
#pragma once

#include "core/registry/model_registry.h"
#include "core/requests/generation_request.h"
#include "core/requests/request_timings.h"
#include "core/requests/scoring_request.h"
#include "core/sampling/token_log_probability.h"
#include "longshort/v1/inference.pb.h"
#include "longshort/v1/models.pb.h"
#include "server/requests/request_limits.h"

namespace longshort {

v1::TokenLogProbability ToMessage(const GeneratedToken& token, const ServedLanguageModel& model);
v1::Timings ToMessage(const RequestTimings& timings);
// `token_count`: tokens of the document.
v1::TextScore ToMessage(const Score& score, int64_t token_count, const ServedLanguageModel& model);
v1::FinishReason ToMessage(FinishReason reason);
v1::Model DescribeModel(const ServedModel& model, const RequestLimits& limits);

}  // namespace longshort
