// Log-probabilities of tokens from one row of raw logits.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
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
  // Sets the current row, [V], which must stay valid while it is used.
  // Errors: INTERNAL if a logit is not finite.
  absl::Status SetRow(absl::Span<const float> logits);

  // Nats. REQUIRES: SetRow was OK; token in [0, V).
  double Of(int32_t token) const { return logits_[token] - largest_ - log_sum_; }

  // The `count` likeliest tokens (V if there are fewer), likeliest first; ties by lowest id.
  std::vector<TokenLogProbability> Likeliest(int64_t count);

 private:
  absl::Span<const float> logits_;
  double largest_ = 0;
  double log_sum_ = 0;  // log of the sum of exp(logit - largest)
  std::vector<int32_t> order_;
};

// Errors: INTERNAL naming the first logit that is not finite.
absl::Status CheckLogitsAreFinite(absl::Span<const float> logits);

}  // namespace longshort::core
