// The margin by which the sampler chose a token.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/sampling/sampler.h"

namespace longshort {

// The smallest distance of anything that the sampler (core/sampling/sampler.h) compared at this position from where the
// comparison would have come out otherwise:
//   greedy: between the two largest logits, with bias and penalties;
//   seeded: of the uniform number from the nearest end of a token's share of the kept probability; and for options that
//   keep tokens, between the logits of the last one kept and the first left out, of the kept probability from top_p, of
//   a token's weight from min_p.
// `prompt`: all that was there before the call generated anything; `generated`: what the call had generated.
double SamplingMargin(const core::SamplingOptions& options, absl::Span<const float> logits,
                      absl::Span<const int32_t> prompt, absl::Span<const int32_t> generated);

}  // namespace longshort
