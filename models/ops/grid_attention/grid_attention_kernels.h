// The kernels of long-short attention on images' grids of tokens. They equal the reference op (grid_attention.h) up to
// rounding.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/ops/rows/rows.h"

// For CPUs: one head of one image. Only pairs of a query and a key that it sees are computed.
namespace longshort::models::cpu {

// Tokens are row-major. The grid is split from the top left into segments of side x side tokens; those at the right and
// bottom edges may be smaller. A query sees its segment and `margin` more tokens on each of the four sides.
struct GridHead {
  int64_t head_width = 0;
  int64_t height = 0, width = 0;  // of the grid, in tokens
  int64_t side = 0, margin = 0;   // at least 1
  int64_t shared = 0;             // vectors that every query sees

  HeadRows<const float> queries;  // not scaled
  HeadRows<const float> keys, values;
  HeadRows<const float> shared_keys, shared_values;
  // Added to the scores of window keys; null: none. [side * side][(side + 2 * margin)^2], queries of a segment and keys
  // around it row-major. Behind the biases are kLanes more floats that may be read.
  const float* bias = nullptr;

  // Rows of segments.
  int64_t bands() const { return (height + side - 1) / side; }
};

// Size of a call's `scratch`, in floats.
int64_t AttendGridScratchFloats(const GridHead& head);

// Writes the rows of `attended` that belong to the queries of a band, from 0. REQUIRES: the processor supports `set`.
void AttendGrid(const GridHead& head, int64_t band, const HeadRows<float>& attended, float* scratch,
                InstructionSet set = BestInstructionSet());

}  // namespace longshort::models::cpu

// For GPUs: a batch of images. The grid is split from the top left into windows of side x side tokens; those at the
// right and bottom edges may be smaller. A token sees its window, max(side / 2, 1) more tokens on each side within the
// grid, and the image's shared vectors.
namespace longshort::models::cuda {

// Bias of a query at (qy, qx) and a key at (ky, kx):
//   table[head * head_step + origin + (qy - ky) * row_step + (qx - kx) * column_step]
struct RelativeBias {
  const float* table;  // null: none
  int head_step;
  int origin, row_step, column_step;
};
// The bias of windows, from the table that models/ops/grid_attention/grid_attention.h defines.
//   table  [positions, heads]
inline RelativeBias WindowBias(const float* table, int heads, int side) {
  RelativeBias bias = {};
  bias.table = table;
  bias.head_step = 1;
  if (side == 1) return bias;  // one entry for all pairs
  const int margin = side / 2;
  bias.row_step = (2 * margin + side) * heads;
  bias.column_step = heads;
  bias.origin = (margin + side - 1) * (bias.row_step + bias.column_step);
  return bias;
}

struct WindowAttention2d {
  RowAttention attention;
  int images;
  int64_t image_rows;  // rows from one image to the next; height * width of them are the grid, row-major
  int height, width;
  int side;  // 0: no windows, shared vectors only
  RelativeBias bias;
};
// REQUIRES: a window or at least one shared vector.
KernelCall WindowAttention2dCall(const WindowAttention2d& arguments);

}  // namespace longshort::models::cuda
