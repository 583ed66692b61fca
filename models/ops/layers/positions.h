// Relative positions: position vectors of distances, and biases of attention scores.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort::models {

// S(min(p, clamp)) for p = 0 .. count-1; a clamp below 1 has no effect.
//   inverse_frequencies  [d/2], as stored with the weights
//   returns              [count, d], of the same type, on the same device
at::Tensor SinusoidalPositions(const at::Tensor& inverse_frequencies, int64_t count, int64_t clamp);

// The index into the bias table for each query of a window of w x w patches and each place that it sees, both
// row-major.
//   returns  [w*w, (w + 2*max(w/2, 1))^2], int64
// With wp = w / 2, a query at (qr, qc) and a key at (kr, kc), counted from the window's corner (keys from -wp on),
// share row (qr - kr + wp + w - 1) * (2*wp + w) + (qc - kc + wp + w - 1). The factor is smaller than the number of
// column offsets, 2 * (wp + w) - 1, so different offsets share rows. The official code does the same, and models are
// trained with it. Windows of one patch have one row for all nine places.
at::Tensor WindowBiasIndex(int64_t window_size, const at::Device& device);

// The index into the bias table for each pair of patches of a grid of side x side, query first: [side^2, side^2],
// int64. Every offset has its own row, (dr + side - 1) * (2*side - 1) + (dc + side - 1).
at::Tensor GridBiasIndex(int64_t side, const at::Device& device);

// The bias of each head and pair.
//   table    [rows, heads]
//   index    [queries, keys]
//   returns  [heads, queries, keys]
at::Tensor BiasOfPairs(const at::Tensor& table, const at::Tensor& index);

}  // namespace longshort::models
