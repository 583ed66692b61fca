// Requests to a language model, to generate tokens or to score some, with the listeners that receive their results and
// the times of their stages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/memory_meter.h"
#include "core/requests/request_context.h"
#include "core/sampling/sampler.h"
#include "core/session/session.h"

namespace longshort::core {

// What a described token takes in memory, with so many alternatives.
constexpr int64_t MemoryOfToken(int64_t alternatives) {
  return static_cast<int64_t>(sizeof(GeneratedToken)) +
         (alternatives == 0 ? 0 : HeapBytes(alternatives * static_cast<int64_t>(sizeof(TokenLogProbability))));
}

// A step of the model that read a piece of a prompt, or several consecutive steps of a long prompt.
struct PromptPiece {
  absl::Time begin;  // by the engine's clock
  absl::Time end;
  int64_t tokens = 0;
  int64_t steps = 0;
};

// How long a request spent in each stage.
struct RequestTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration queue;                         // from submission to the first step
  absl::Duration prefill;                       // from the first step until the last prompt token was read
  absl::Duration decode;                        // from then until the end
  std::vector<PromptPiece> prompt_pieces = {};
};

// The steps in which a prompt was read. Their number is bounded: when there are too many, neighbours are merged.
class PromptPieces final {
 public:
  static constexpr size_t kMax = 32;

  // Adds one step, which is later than all steps before.
  void Add(const PromptPiece& step) {
    if (!pieces_.empty() && pieces_.back().steps < steps_of_a_piece_) return Join(step, pieces_.back());
    if (pieces_.size() == kMax) Halve();
    pieces_.push_back(step);
  }

  const std::vector<PromptPiece>& all() const { return pieces_; }

 private:
  static void Join(const PromptPiece& next, PromptPiece& piece) {
    piece.end = next.end;
    piece.tokens += next.tokens;
    piece.steps += next.steps;
  }

  void Halve() {
    for (size_t i = 0; i < kMax / 2; ++i) {
      const PromptPiece next = pieces_[2 * i + 1];
      pieces_[i] = pieces_[2 * i];
      Join(next, pieces_[i]);
    }
    pieces_.resize(kMax / 2);
    steps_of_a_piece_ *= 2;
  }

  std::vector<PromptPiece> pieces_;
  int64_t steps_of_a_piece_ = 1;
};

// When the stages of a request began.
//
// A stage that was not reached yet is in the infinite future.
struct RequestTimes {
  absl::Time submitted = absl::InfiniteFuture();
  absl::Time started = absl::InfiniteFuture();    // its first step began
  absl::Time prefilled = absl::InfiniteFuture();  // the last prompt token was read
  PromptPieces prompt_pieces;

  // The durations of a request that ends at `end`.
  RequestTimings TimingsAt(absl::Time end) const {
    const absl::Time queued_until = std::min(started, end);
    const absl::Time prefilled_until = std::min(prefilled, end);
    return {.submitted = submitted,
            .queue = queued_until - submitted,
            .prefill = prefilled_until - queued_until,
            .decode = end - prefilled_until,
            .prompt_pieces = prompt_pieces.all()};
  }
};

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
