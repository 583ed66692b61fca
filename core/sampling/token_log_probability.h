// What a token's probability was.
#pragma once

#include <cstdint>
#include <vector>

namespace longshort {

struct TokenLogProbability {
  int32_t token = 0;
  // Of the raw model, before any of the sampling options; nats.
  float log_probability = 0;
};

// A token of a prompt, a document or a generation.
struct GeneratedToken {
  int32_t token = 0;
  // Both only if asked for.
  float log_probability = 0;
  std::vector<TokenLogProbability> alternatives;
};

}  // namespace longshort
