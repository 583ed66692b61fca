// When the stages of a request began.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "core/requests/request_timings.h"

namespace longshort {

// A stage that was not reached yet lies in the infinite future.
struct RequestTimes {
  absl::Time submitted = absl::InfiniteFuture();
  absl::Time started = absl::InfiniteFuture();    // its first step began
  absl::Time prefilled = absl::InfiniteFuture();  // the last prompt token was read
  int64_t prompt_steps = 0;                       // that read a piece of the prompt

  // Where the time went for a request that ends at `end`.
  RequestTimings TimingsAt(absl::Time end) const {
    const absl::Time queued_until = std::min(started, end);
    const absl::Time prefilled_until = std::min(prefilled, end);
    return {.submitted = submitted,
            .queue = queued_until - submitted,
            .prefill = prefilled_until - queued_until,
            .decode = end - prefilled_until,
            .prompt_steps = prompt_steps};
  }
};

}  // namespace longshort
