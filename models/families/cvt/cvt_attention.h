// Long-short attention of CvT*-LS: separable convolutions instead of linear projections, the 2-D operation, DualLN.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/families/cvt/separable_convolution.h"
#include "models/ops/grid_attention/long_short_attention_2d.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

struct CvtAttention {
  int64_t heads = 0;
  WindowGeometry window;
  SeparableConvolution query, key, value;  // to_q, to_k, to_v
  SeparableConvolution projection;         // to_dyn: computes heads * r channels, channel = head * r + column
  LayerNorm local_key_norm;                // ln_l
  LayerNorm local_value_norm;              // ln_l, or ln_l_v
  LayerNorm landmark_key_norm;             // ln_g
  LayerNorm landmark_value_norm;           // ln_g, or ln_g_v
  Linear output;                           // proj

  // tokens [batch, height * width, d], normalised -> the same shape, plus `added` as in Linear. `statistics` as
  // BatchNorm takes them.
  at::Tensor operator()(const at::Tensor& tokens, const at::Tensor& added, const TokenGrid& grid,
                        BatchStatistics* statistics, ItemAttention& item_attention) const;

  // As SeparableConvolution::PrepareForServing.
  void PrepareForServing();
  // REQUIRES: PrepareForServing was called.
  void MoveBy(TensorMove& move);
  // The batch norms in the order in which they append their statistics.
  std::vector<const BatchNorm*> BatchNorms() const;
};

}  // namespace longshort::models
