// Bidirectional long-short attention on the token grids of a batch of images. Equals the reference op
// (models/ops/grid_attention/long_short_attention_2d.h).
//
// The grid is split from the top left into windows of side x side tokens; those at the right and bottom edges may be
// smaller. A token sees its window, max(side / 2, 1) more tokens on each side within the grid, and the image's shared
// vectors.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"
#include "models/ops/rows/row_attention.h"

namespace longshort::models::cuda {

// Bias of a query at (qy, qx) and a key at (ky, kx):
//   table[head * head_step + origin + (qy - ky) * row_step + (qx - kx) * column_step]
struct RelativeBias {
  const float* table;  // null: none
  int head_step;
  int origin, row_step, column_step;
};
// The bias of windows, from the table that models/ops/layers/positions.h defines.
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
