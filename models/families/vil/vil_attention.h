// The two kinds of attention of ViL-LS. The tokens are in one sequence: global tokens first, then the patches of a
// square grid, row-major.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// Long-short attention in two dimensions. Patches see their window, the landmarks and the global token. Then the global
// token sees itself and the patches' output. There is at most one global token.
struct VilSparseAttention {
  Linear query_key_value;     // qkv, [3d, d]
  Linear dynamic_projection;  // to_dynamic_projection, [heads * rank, d]; undefined tensors without landmarks
  LayerNorm landmark_norm;    // dual_ln_dp: for the landmarks' keys and values
  LayerNorm full_norm;        // dual_ln_full: for all tokens' keys and values
  WindowBias bias;            // for window scores, by relative position
  Linear output;              // proj
  int64_t heads = 0;
  int64_t global_tokens = 0;  // 0 or 1
  int64_t window_size = 0;    // 0: no windows
  int64_t side = 0;           // of the grid, a multiple of window_size

  Linear joined = {};  // query_key_value and dynamic_projection, on GPUs

  // rows [batch, global_tokens + side^2, d] -> the same shape, plus `added` as in Linear.
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& added, ItemAttention& attention) const {
    return output(Attended(rows, attention), added);
  }
  // The same before `output`.
  at::Tensor Attended(const at::Tensor& rows, ItemAttention& attention) const;

  void MoveBy(TensorMove& move);

 private:
  // The keys and values that patches see in addition to their windows: [batch, m, d], global tokens first.
  //   logits           dynamic_projection's, of all tokens
  //   keys_values      of all tokens, after full_norm
  RowKeyValues SharedVectors(const at::Tensor& logits, const RowKeyValues& keys_values, ItemAttention& attention) const;
};

// Full attention: every token sees every token.
struct VilFullAttention {
  Linear query_key_value;      // qkv, [3d, d]
  Linear output;               // proj
  at::Tensor bias_table;       // [(2 * side - 1)^2, heads]: for patches, by relative position; undefined: none
  at::Tensor bias_index;       // GridBiasIndex; undefined without a table
  at::Tensor global_biases;    // g2l, [2, heads, g]: for scores global -> patch and patch -> global; undefined without
                               // a table or global tokens
  at::Tensor between_globals;  // g2g, [heads, g, g]; likewise
  int64_t heads = 0;
  // MoveBy makes one of these two from the table. The CPU's kernel in float32 reads BiasForKernel's form.
  at::Tensor kernel_bias = {};
  // All other serving adds the bias of each pair of tokens to its score: [1, heads, g + side^2, g + side^2], with rows
  // VilBiasStride elements apart.
  at::Tensor score_bias = {};

  // rows [batch, g + side^2, d] -> the same shape, plus `added` as in Linear.
  at::Tensor operator()(const at::Tensor& rows, const at::Tensor& added) const { return output(Attended(rows), added); }
  // The same before `output`.
  at::Tensor Attended(const at::Tensor& rows) const;

  void MoveBy(TensorMove& move);
};

}  // namespace longshort::models
