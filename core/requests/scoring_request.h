// A request to score token ids with a language model, and the listener that receives the result.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "core/sampling/log_probabilities.h"
#include "core/session/session.h"

namespace longshort::core {

struct ScoringRequest {
  RequestContext context;
  // At least one token, each in [0, V). The first is scored only if a session precedes it.
  std::vector<int32_t> tokens;
  std::optional<SessionReference> session = std::nullopt;
  // Whether to return the log-probability of each token, and how many of the likeliest alternatives with it.
  bool log_probabilities = false;
  int64_t top_alternatives = 0;
};

struct Score {
  // Nats, summed over the scored tokens in double precision.
  double total_log_probability = 0;
  int64_t scored_tokens = 0;
  // [scored_tokens] if asked for, in the order of the tokens.
  std::vector<GeneratedToken> tokens;
  int64_t reused_tokens = 0;   // of the session, found in the cache
  int64_t session_tokens = 0;  // that the session has now; 0 without one
  RequestTimings timings;
};

// Receives the result of one request, once, from the engine's thread; must not block.
class ScoringListener {
 public:
  virtual ~ScoringListener() = default;
  virtual void OnFinished(absl::StatusOr<Score> score) = 0;
};

}  // namespace longshort::core
