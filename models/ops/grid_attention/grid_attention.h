// Bidirectional long-short attention on an image's grid of tokens: one softmax over a window around the query and a few
// vectors that every query sees.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"

namespace longshort::models {

struct RowsToAttend;

// The tokens of an image, row-major: token y * width + x is at (y, x).
struct TokenGrid {
  int64_t height = 0;
  int64_t width = 0;

  int64_t tokens() const { return height * width; }
};

// The windows of a grid. The grid is split from the top left into segments of side x side tokens; those at the right
// and bottom edges may be smaller. A query sees its segment and `margin` more tokens on each of the four sides.
struct WindowGeometry {
  int64_t side = 0;  // w; 0: no window

  int64_t margin() const { return side / 2 > 1 ? side / 2 : 1; }    // max(w / 2, 1)
  int64_t visible_side() const { return side + 2 * margin(); }      // w + 2 * margin
  int64_t queries() const { return side * side; }                   // per segment
  int64_t keys() const { return visible_side() * visible_side(); }  // per segment
};

// Keys and values, each [batch, heads, n, head_dim].
struct KeyValues {
  at::Tensor keys;
  at::Tensor values;
};

// Attention of all tokens of a grid. The reference op: differentiable, any device, memory linear in tokens.
//   queries      [batch, heads, tokens, head_dim], scaled
//   tokens       keys and values of the tokens; each query sees those in its window
//   shared       m >= 0 vectors that every query sees, in any order: landmarks of the dynamic projection, global tokens
//   window_bias  undefined, or [heads, w*w, (w + 2*margin)^2]: added to the scores of window keys; queries of a segment
//                and keys around it row-major
//   returns      [batch, heads, tokens, head_dim]
// REQUIRES: a window or at least one shared vector.
at::Tensor LongShortAttention2d(const at::Tensor& queries, const KeyValues& tokens, const KeyValues& shared,
                                const TokenGrid& grid, const WindowGeometry& window, const at::Tensor& window_bias);

// Whether the kernel for CPUs (AttendGrids) can compute this: float32 on the CPU, with a window, and no gradient is
// asked for.
bool CanAttendGrids(const RowsToAttend& rows, const WindowGeometry& window);

// A contiguous copy behind which kernels may read a vector more.
at::Tensor WithVectorBehind(const at::Tensor& biases);

// LongShortAttention2d by a kernel for each image (`window_bias` is its bias WithVectorBehind, or undefined). Returns
// [images, others + tokens, d]: the caller writes the first `others` rows. REQUIRES: CanAttendGrids.
at::Tensor AttendGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                       const at::Tensor& window_bias, int64_t others);

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
