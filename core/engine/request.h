// What a client asks the engine to do with a language model, in token ids, and how it hears of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/call_part.h"
#include "core/schedule/priority.h"

namespace longshort {

// Set by any thread when nobody waits for the answer any more; the engine looks before every step.
using CancellationFlag = std::atomic<bool>;

// Set while the client takes nothing of what waits for it: the engine leaves the request's sequences out of its steps
// until it is cleared.
using PauseFlag = std::atomic<bool>;

// How the next token is chosen from the logits. Order: logit bias, repetition (prompt and generated tokens), frequency
// and presence (generated tokens), temperature, top-k, top-p, min-p.
struct SamplingOptions {
  // 0 takes the likeliest token; otherwise logits are divided by it. At least 0.
  double temperature = 1.0;
  // Keep the k likeliest tokens; 0 keeps all.
  int64_t top_k = 0;
  // Keep the likeliest tokens that together reach this probability, in (0, 1]; 1 keeps all.
  double top_p = 1.0;
  // Keep tokens at least this fraction as likely as the likeliest, in [0, 1]; 0 keeps all.
  double min_p = 0.0;
  // Divides positive and multiplies negative logits of tokens seen in the prompt or generated; over 0, 1 changes
  // nothing.
  double repetition_penalty = 1.0;
  // Subtracted per earlier generation of the token.
  double frequency_penalty = 0.0;
  // Subtracted once if the token was generated before.
  double presence_penalty = 0.0;
  // (token, added to its logit); each token at most once.
  std::vector<std::pair<int32_t, float>> logit_bias;
  // Key of the counter-based generator, and which of a request's completions draws; the counter is the token's stream
  // position.
  uint64_t seed = 0;
  uint32_t completion = 0;
};

struct TokenLogProbability {
  int32_t token = 0;
  // Of the raw model, before any of the sampling options; nats.
  float log_probability = 0;
};

// What all requests have.
struct RequestContext {
  // For the logs.
  std::string id;
  // Who asks, as far as fairness goes: clients share the engine's time. "" is everybody who did not say.
  std::string client;
  Priority priority = Priority::kNormal;
  // Of the call.
  CallPart part = {};
  // When the client stops waiting.
  absl::Time deadline = absl::InfiniteFuture();
  std::shared_ptr<CancellationFlag> cancelled = std::make_shared<CancellationFlag>(false);
  std::shared_ptr<PauseFlag> paused = std::make_shared<PauseFlag>(false);
};

// Where a request's time went.
struct RequestTimings {
  absl::Duration queue;    // from submission to the first step
  absl::Duration prefill;  // from the first step until the last prompt token was read
  absl::Duration decode;   // from then until the end
};

enum class FinishReason {
  kMaxTokens,   // max_tokens were generated
  kStopString,  // a stop string was completed
};

// A conversation that a request goes on with, or begins (core/session/session_store.h); the client's that asks.
struct SessionReference {
  std::string id;
  // Only go on: it must be there.
  bool must_exist = false;
  // How many tokens it must hold; 0 if it must be new.
  std::optional<int64_t> expected_tokens = std::nullopt;
};

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

struct GeneratedToken {
  int32_t token = 0;
  // Both only if asked for.
  float log_probability = 0;
  std::vector<TokenLogProbability> alternatives;
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

struct ScoringRequest {
  RequestContext context;
  // At least one token, each in [0, V). The first is scored only if a session precedes it.
  std::vector<int32_t> tokens;
  std::optional<SessionReference> session = std::nullopt;
  // Whether the log-probability of each token is wanted, and how many of the likeliest alternatives beside.
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

// Hears of one scoring, once, from the engine's thread; must not block.
class ScoringListener {
 public:
  virtual ~ScoringListener() = default;
  virtual void OnFinished(absl::StatusOr<Score> score) = 0;
};

}  // namespace longshort
