// Where a language model's request spent its time.
#pragma once

#include "absl/time/time.h"

namespace longshort {

// Where a request's time went.
struct RequestTimings {
  absl::Duration queue;    // from submission to the first step
  absl::Duration prefill;  // from the first step until the last prompt token was read
  absl::Duration decode;   // from then until the end
};

}  // namespace longshort
