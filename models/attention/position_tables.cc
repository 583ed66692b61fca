#include "models/attention/position_tables.h"

#include "ATen/Functions.h"

namespace longshort {

at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp) {
  at::Tensor positions = at::arange(count, inverse_frequencies.options().dtype(at::kDouble));
  if (clamp > 0) positions = positions.clamp_max(clamp);
  const at::Tensor angles = at::outer(positions, inverse_frequencies.to(at::kDouble));
  return at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
}

}  // namespace longshort
