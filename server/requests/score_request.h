// A ScoreTextRequest of the contract as requests to the engine: one for each document.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "core/engine/request.h"
#include "core/registry/model_registry.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/request_limits.h"

namespace longshort {

// In the order of the inputs. All share the context that was given.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit.
absl::StatusOr<std::vector<ScoringRequest>> ReadScoreRequest(const v1::ScoreTextRequest& request,
                                                             const ServedLanguageModel& model,
                                                             const RequestLimits& limits,
                                                             const RequestContext& context);

}  // namespace longshort
