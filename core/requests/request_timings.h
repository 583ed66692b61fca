// Where a language model's request spent its time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace longshort {

// A step of the model that read a piece of a prompt; or several such steps in a row, of a prompt that took many.
struct PromptPiece {
  absl::Time begin;  // by the engine's clock
  absl::Time end;
  int64_t tokens = 0;
  int64_t steps = 0;
};

// Where a request's time went.
struct RequestTimings {
  absl::Time submitted = absl::InfinitePast();  // by the engine's clock; in the infinite past if it never was
  absl::Duration queue;                         // from submission to the first step
  absl::Duration prefill;                       // from the first step until the last prompt token was read
  absl::Duration decode;                        // from then until the end
  std::vector<PromptPiece> prompt_pieces = {};
};

}  // namespace longshort
