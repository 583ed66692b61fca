// The contract's Sampling as the engine's SamplingOptions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/sampling/sampling_options.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/request_limits.h"

namespace longshort {

// Unset fields take the contract's defaults; the seed is left to the caller if unset.
// Errors: INVALID_ARGUMENT naming the field, its value and the limit; NaN is outside every range.
absl::StatusOr<SamplingOptions> ReadSampling(const v1::Sampling& sampling, int64_t vocabulary_size,
                                             const RequestLimits& limits);

}  // namespace longshort
