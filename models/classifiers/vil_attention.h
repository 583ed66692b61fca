// The two kinds of attention of ViL-LS, over tokens that stand in one row: global tokens first, then the patches of a
// square grid, row-major.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/item_attention.h"
#include "models/layers/linear.h"

namespace longshort::models {

// Long-short attention in two dimensions: patches see their window, the landmarks and the global token; then the global
// token sees itself and what the patches became. At most one global token.
struct VilSparseAttention {
  Linear query_key_value;     // qkv, [3d, d]
  Linear dynamic_projection;  // to_dynamic_projection, [heads * rank, d]; undefined tensors without landmarks
  LayerNorm landmark_norm;    // dual_ln_dp: of the landmarks' keys and values
  LayerNorm full_norm;        // dual_ln_full: of all tokens' keys and values
  WindowBias bias;            // of window scores by relative position
  Linear output;              // proj
  int64_t heads = 0;
  int64_t global_tokens = 0;  // 0 or 1
  int64_t window_size = 0;    // 0: no windows
  int64_t side = 0;           // of the grid, a multiple of window_size

  // rows [batch, global_tokens + side^2, d] -> the same shape.
  at::Tensor operator()(const at::Tensor& rows, ItemAttention& attention) const;

  void MoveBy(TensorMove& move);

 private:
  // What patches see beside their windows: [batch, m, d], global tokens first.
  //   global, patches  keys and values, after full_norm
  RowKeyValues SharedVectors(const at::Tensor& rows, const RowKeyValues& global, const RowKeyValues& patches,
                             ItemAttention& attention) const;
};

// Every token sees every token.
struct VilFullAttention {
  Linear query_key_value;      // qkv, [3d, d]
  Linear output;               // proj
  at::Tensor bias_table;       // [(2 * side - 1)^2, heads]: of patches by relative position; undefined: none
  at::Tensor bias_index;       // GridBiasIndex, if there is a table
  at::Tensor global_biases;    // g2l, [2, heads, g]: of scores global -> patch, patch -> global; if table and globals
  at::Tensor between_globals;  // g2g, [heads, g, g]; likewise
  int64_t heads = 0;

  // rows [batch, g + side^2, d] -> the same shape.
  at::Tensor operator()(const at::Tensor& rows) const;

  void MoveBy(TensorMove& move);
};

}  // namespace longshort::models
