#include "models/ops/layers/positions.h"

#include <algorithm>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort::models {
namespace {

// Non-negative offsets along one axis of `queries` positions to keys at -margin .. queries + margin - 1.
//   returns  [queries, queries + 2 * margin], int64
at::Tensor Offsets(int64_t queries, int64_t margin, const at::Device& device) {
  const at::TensorOptions integers = at::TensorOptions(at::kLong).device(device);
  const at::Tensor keys = at::arange(-margin, queries + margin, integers);
  return at::arange(queries, integers).unsqueeze(1) - keys + (margin + queries - 1);
}

// rows * factor + columns for all pairs of places in squares whose axes have these offsets.
at::Tensor PairIndex(const at::Tensor& offsets, int64_t factor) {
  const at::Tensor rows = offsets.unsqueeze(1).unsqueeze(3), columns = offsets.unsqueeze(0).unsqueeze(2);
  return (rows * factor + columns).flatten(2, 3).flatten(0, 1);
}

}  // namespace

at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp) {
  constexpr int64_t kRows = 4096;  // at a time, since doubles take several times the memory of the result
  at::Tensor positions = at::arange(count, inverse_frequencies.options().dtype(at::kDouble));
  if (clamp > 0) positions = positions.clamp_max(clamp);
  const at::Tensor frequencies = inverse_frequencies.to(at::kDouble);
  at::Tensor table = at::empty({count, 2 * frequencies.size(0)}, inverse_frequencies.options());
  for (int64_t first = 0; first < count; first += kRows) {
    const int64_t rows = std::min(kRows, count - first);
    const at::Tensor angles = at::outer(positions.narrow(0, first, rows), frequencies);
    table.narrow(0, first, rows).copy_(at::cat({angles.sin(), angles.cos()}, 1));
  }
  return table;
}

at::Tensor WindowBiasIndex(int64_t window_size, const at::Device& device) {
  if (window_size == 1) return at::zeros({1, 9}, at::TensorOptions(at::kLong).device(device));
  const int64_t margin = window_size / 2;
  return PairIndex(Offsets(window_size, margin, device), 2 * margin + window_size);
}

at::Tensor GridBiasIndex(int64_t side, const at::Device& device) {
  return PairIndex(Offsets(side, 0, device), 2 * side - 1);
}

at::Tensor BiasOfPairs(const at::Tensor& table, const at::Tensor& index) {
  return table.t().index_select(1, index.flatten()).unflatten(1, index.sizes());
}

}  // namespace longshort::models
