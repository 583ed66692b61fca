// Whether a call's sampling is one that the engine takes.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/sampling/sampling_options.h"
#include "server/calls/call_names.h"
#include "server/calls/request_limits.h"

namespace longshort {

// The options as the engine wants them: equal ones of equal calls. The seed stays as it is.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit; NaN is outside every range.
absl::StatusOr<SamplingOptions> CheckSampling(SamplingOptions sampling, int64_t vocabulary_size,
                                              const RequestLimits& limits, const CallNames& names);

}  // namespace longshort
