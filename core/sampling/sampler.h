// What becomes of a row of logits: log-probabilities of tokens, and the next token of one generation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace longshort::core {

// A token and its log-probability.
struct TokenLogProbability {
  int32_t token = 0;
  // In nats, by the raw model, before any of the sampling options.
  float log_probability = 0;
};

// A token of a prompt, a document or a generation.
struct GeneratedToken {
  int32_t token = 0;
  // Both only if requested.
  float log_probability = 0;
  std::vector<TokenLogProbability> alternatives;
};

// The log-softmax of one row at a time; sums in double precision. Reuses its memory for the next row.
class LogProbabilities {
 public:
  // Sets the current row, [V], which must stay valid while it is used. It may be empty.
  // Errors: INTERNAL if a logit is not finite.
  absl::Status SetRow(absl::Span<const float> logits);

  // Nats. REQUIRES: SetRow was OK; token in [0, V).
  double Of(int32_t token) const { return logits_[token] - largest_ - log_sum_; }

  // The `count` likeliest tokens (V if there are fewer), likeliest first; ties by lowest id.
  std::vector<TokenLogProbability> Likeliest(int64_t count);

 private:
  absl::Span<const float> logits_;
  double largest_ = 0;
  double log_sum_ = 0;                    // log of the sum of exp(logit - largest)
  std::vector<float> largest_of_blocks_;  // [blocks] (core/sampling/row_passes.h)
  std::vector<double> sums_of_blocks_;    // [blocks]
};

// Errors: INTERNAL naming the first logit that is not finite.
absl::Status CheckLogitsAreFinite(absl::Span<const float> logits);

// The options that choose the next token of a generation. They apply to the logits in this order: logit bias,
// repetition (prompt and generated tokens), frequency and presence (generated tokens), temperature, top-k, top-p,
// min-p.
struct SamplingOptions {
  // 0 chooses the likeliest token; otherwise logits are divided by it. At least 0.
  double temperature = 1.0;
  // Keep the k likeliest tokens; 0 keeps all.
  int64_t top_k = 0;
  // Keep the likeliest tokens that together reach this probability, in (0, 1]; 1 keeps all.
  double top_p = 1.0;
  // Keep tokens at least this fraction as likely as the likeliest, in [0, 1]; 0 keeps all.
  double min_p = 0.0;
  // Divides positive and multiplies negative logits of tokens in the prompt or generated; over 0; 1 has no effect.
  double repetition_penalty = 1.0;
  // Subtracted per earlier generation of the token.
  double frequency_penalty = 0.0;
  // Subtracted once if the token was generated before.
  double presence_penalty = 0.0;
  // Pairs of a token and the amount added to its logit; each token at most once.
  std::vector<std::pair<int32_t, float>> logit_bias;
  // Key of the counter-based generator, and the index of the completion within its request; the counter is the token's
  // stream position.
  uint64_t seed = 0;
  uint32_t completion = 0;
};

// Philox4x32-10: random numbers as a function of a key and a counter (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Stateless, so the number at a stream position never depends on the steps that
// led to it.

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Four random words, uniform and independent for different counters.
PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key);

// Uniform in [0, 1), with 53 random bits: the draw of completion `completion` at stream position `position`.
double UniformAt(uint64_t seed, uint64_t position, uint32_t completion);

// The ids that may be sampled, ascending, at least one; shared by all generations of a model.
using SampleableTokens = std::shared_ptr<const std::vector<int32_t>>;

// Remembers the tokens of the prompt and those that it chose, if the options have penalties.
//
// The choice depends only on the options, those tokens, the logits and the position. Options that filter tokens select
// a set; the draw then goes through that set by ascending id, so that if two nearly equal logits swap their order, no
// other token is affected.
class Sampler {
 public:
  // REQUIRES: options within the ranges in SamplingOptions; their tokens and the prompt's in [0, V).
  Sampler(const SamplingOptions& options, SampleableTokens sampleable, absl::Span<const int32_t> prompt);

  // Chooses the token for stream position `position`, from the row of the token before it, [V].
  // Errors: INTERNAL if a logit is not finite.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits, int64_t position);

 private:
  // What the options change of a token's logit.
  struct Change {
    float bias = 0;
    bool seen = false;      // in the prompt or generated
    int64_t generated = 0;  // how often it was chosen
  };

  template <typename Number>
  int64_t Choose(absl::Span<const Number> row, int64_t position) const;
  // The logits of the tokens from the first sampleable one on, with bias and penalties; -inf if not sampleable.
  void ApplyBiasAndPenalties(absl::Span<const float> logits, std::vector<double>& row) const;
  // Remembers a token; both only if a penalty depends on it.
  void Remember(int32_t token, bool generated);

  const SamplingOptions options_;
  const SampleableTokens sampleable_;
  // Ids from the first sampleable token to the last one that are not sampleable.
  std::vector<int32_t> excluded_;
  std::unordered_map<int32_t, Change> changes_;  // by token
};

}  // namespace longshort::core
