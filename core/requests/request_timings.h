// Where a language model's request spent its time.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace longshort {

// Where a request's time went.
struct RequestTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration queue;                         // from submission to the first step
  absl::Duration prefill;                       // from the first step until the last prompt token was read
  absl::Duration decode;                        // from then until the end
  int64_t prompt_steps = 0;                     // of the model, that read a piece of the prompt
};

}  // namespace longshort
