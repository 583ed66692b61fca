// When the stages of a request began.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "core/requests/prompt_pieces.h"
#include "core/requests/request_timings.h"

namespace longshort {

// A stage that was not reached yet lies in the infinite future.
struct RequestTimes {
  absl::Time submitted = absl::InfiniteFuture();
  absl::Time started = absl::InfiniteFuture();    // its first step began
  absl::Time prefilled = absl::InfiniteFuture();  // the last prompt token was read
  PromptPieces prompt_pieces;

  // Where the time went for a request that ends at `end`.
  RequestTimings TimingsAt(absl::Time end) const {
    const absl::Time queued_until = std::min(started, end);
    const absl::Time prefilled_until = std::min(prefilled, end);
    return {.submitted = submitted,
            .queue = queued_until - submitted,
            .prefill = prefilled_until - queued_until,
            .decode = end - prefilled_until,
            .prompt_pieces = prompt_pieces.all()};
  }
};

}  // namespace longshort
