// Sinusoidal position vectors S(p) of distances (spec of the model: all sines, then all cosines).
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort {

// S(min(p, clamp)) for p = 0 .. count-1; a clamp below 1 clamps nothing.
//   inverse_frequencies  [d/2], float32, as stored with the weights
//   returns              [count, d], float32, on their device
at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp);

}  // namespace longshort
