// A request to generate tokens with a language model, and the listener that receives them.
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
  // At least one token, each in [0, V); may be empty if the session has tokens.
  std::vector<int32_t> prompt;
  std::optional<SessionReference> session = std::nullopt;
  // At least 1.
  int64_t max_tokens = 0;
  SamplingOptions sampling;
  // None is empty. The text that completes one ends the generation; neither it nor later text is delivered.
  std::vector<std::string> stop_strings;
  // Whether to return log-probabilities of generated tokens, and how many of the likeliest alternatives with each.
  bool log_probabilities = false;
  int64_t top_alternatives = 0;
  // Whether to return log-probabilities of the prompt's tokens (starting at the second one, unless the prompt continues
  // a session).
  bool prompt_log_probabilities = false;

  // Bytes of the stop strings and logit biases.
  int64_t OptionBytes() const {
    auto bytes = static_cast<int64_t>(sampling.logit_bias.size() * sizeof(sampling.logit_bias.front()));
    for (const std::string& stop : stop_strings) bytes += static_cast<int64_t>(sizeof(stop) + stop.capacity());
    return bytes;
  }
};

enum class FinishReason {
  kMaxTokens,   // max_tokens were generated
  kStopString,  // a stop string was completed
};

// New output of a generation. Bytes that may begin a stop string are held back; a token comes with the first of its
// bytes.
struct GenerationDelta {
  std::string bytes;
  std::vector<GeneratedToken> tokens;
  int64_t session_tokens = 0;  // with keep_partial: that the session has if the generation ends early after this
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

// Receives the output of one generation. The engine's thread calls it, one call at a time; must not block.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // Called once, before any delta, if requested: an entry for each of the prompt's tokens (starting at the second one,
  // unless the prompt continues a session), each with GenerationRequest::top_alternatives alternatives.
  virtual void OnPromptScored(std::vector<GeneratedToken> tokens) = 0;
  virtual void OnDelta(GenerationDelta delta) = 0;
  // The last call. OK has a complete summary; an error (CANCELLED, DEADLINE_EXCEEDED, UNAVAILABLE, INTERNAL) has the
  // counts so far.
  virtual void OnFinished(const absl::Status& status, const GenerationSummary& summary) = 0;
};

}  // namespace longshort::core
