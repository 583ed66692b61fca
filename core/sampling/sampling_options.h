// The options that choose the next token of a generation.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace longshort::core {

// Applied to the logits in this order: logit bias, repetition (prompt and generated tokens), frequency
// and presence (generated tokens), temperature, top-k, top-p, min-p.
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

}  // namespace longshort::core
