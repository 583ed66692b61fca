// How many tokens a call took.
#pragma once

#include <cstdint>

namespace longshort {

struct Usage {
  int64_t prompt_tokens = 0;     // of prompts and documents, found in the cache or not
  int64_t generated_tokens = 0;  // sampled
  int64_t cached_tokens = 0;     // found in the cache, of prompts and of the sessions before them
};

}  // namespace longshort
