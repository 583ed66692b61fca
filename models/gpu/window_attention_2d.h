// Bidirectional long-short attention on grids of tokens, as images have them: as the reference op
// (models/attention/long_short_attention_2d.h), for a batch of images.
//
// The grid is cut from the top-left into windows of side x side tokens, those at the right and at the bottom possibly
// smaller. A token sees its window and max(side / 2, 1) tokens more on each side, as far as the grid goes, and the
// image's shared vectors.
#pragma once

#include <cstdint>

#include "models/gpu/kernel_call.h"
#include "models/gpu/row_attention.h"

namespace longshort::models::cuda {

// Bias of a query at (qy, qx) and a key at (ky, kx):
//   table[head * head_step + origin + (qy - ky) * row_step + (qx - kx) * column_step]
struct RelativeBias {
  const float* table;  // null: none
  int head_step;
  int origin, row_step, column_step;
};
// As models/attention/positions.h has them for windows.
//   table  [positions, heads]
inline RelativeBias WindowBias(const float* table, int heads, int side) {
  RelativeBias bias = {};
  bias.table = table;
  bias.head_step = 1;
  if (side == 1) return bias;  // one entry for all
  const int margin = side / 2;
  bias.row_step = (2 * margin + side) * heads;
  bias.column_step = heads;
  bias.origin = (margin + side - 1) * (bias.row_step + bias.column_step);
  return bias;
}

struct WindowAttention2d {
  RowAttention attention;
  int images;
  int64_t image_rows;  // from one image's tokens to the next's; of them height * width are the grid, row-major
  int height, width;
  int side;  // 0: no windows, shared vectors only
  RelativeBias bias;
};
// REQUIRES: a window or at least one shared vector.
KernelCall WindowAttention2dCall(const WindowAttention2d& arguments);

}  // namespace longshort::models::cuda
