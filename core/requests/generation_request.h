// What a client asks a language model to generate, in token ids, and how it hears of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/requests/request_context.h"
#include "core/requests/request_timings.h"
#include "core/sampling/log_probabilities.h"
#include "core/sampling/sampling_options.h"
#include "core/session/session.h"

namespace longshort::core {

struct GenerationRequest {
  RequestContext context;
  // At least one token, each in [0, V); none needed behind a session that has some.
  std::vector<int32_t> prompt;
  std::optional<SessionReference> session = std::nullopt;
  // At least 1.
  int64_t max_tokens = 0;
  SamplingOptions sampling;
  // None empty. The text that completes one ends the generation; neither it nor anything behind it is delivered.
  std::vector<std::string> stop_strings;
  // Whether log-probabilities of generated tokens are wanted, and how many of the likeliest alternatives beside.
  bool log_probabilities = false;
  int64_t top_alternatives = 0;
  // Whether log-probabilities of the prompt's tokens are wanted (from the second on unless a session precedes the
  // first).
  bool prompt_log_probabilities = false;
};

enum class FinishReason {
  kMaxTokens,   // max_tokens were generated
  kStopString,  // a stop string was completed
};

// Something new of a generation. Bytes are held back while they could be the beginning of a stop string, and the tokens
// come with the first of their bytes.
struct GenerationDelta {
  std::string bytes;
  std::vector<GeneratedToken> tokens;
};

struct GenerationSummary {
  FinishReason finish_reason = FinishReason::kMaxTokens;
  // The stop string that ended it, if one did.
  std::string stop_string;
  int64_t prompt_tokens = 0;     // read, or reused
  int64_t reused_tokens = 0;     // found in the cache, of those and of the session before them
  int64_t generated_tokens = 0;  // sampled, delivered or not
  int64_t session_tokens = 0;    // that the session has now; 0 without one
  RequestTimings timings;
};

// Hears of one generation. Called by the engine's thread, never two calls at once; must not block.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // Once, before any delta, if asked for: an entry for each of the prompt's tokens, from the second on unless a session
  // precedes the first, with GenerationRequest::top_alternatives alternatives.
  virtual void OnPromptScored(std::vector<GeneratedToken> tokens) = 0;
  virtual void OnDelta(GenerationDelta delta) = 0;
  // The last call. OK comes with a whole summary; an error (CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, INTERNAL) with
  // the counts so far.
  virtual void OnFinished(const absl::Status& status, const GenerationSummary& summary) = 0;
};

}  // namespace longshort::core
