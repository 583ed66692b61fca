// Attention of images' tokens on the CPU, without gradients: LongShortAttention2d by a kernel.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/ops/grid_attention/long_short_attention_2d.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

// Whether AttendGrids can compute this: float32 on the CPU, with a window, and no gradient is asked for.
bool CanAttendGrids(const RowsToAttend& rows, const WindowGeometry& window);

// A contiguous copy behind which kernels may read a vector more.
at::Tensor WithVectorBehind(const at::Tensor& biases);

// LongShortAttention2d for each image (`window_bias` is its bias WithVectorBehind, or undefined). Returns
// [images, others + tokens, d]: the caller writes the first `others` rows. REQUIRES: CanAttendGrids.
at::Tensor AttendGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                       const at::Tensor& window_bias, int64_t others);

}  // namespace longshort::models
