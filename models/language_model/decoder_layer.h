// One layer of the language model: its weights and its maths, row by row. The served step and the trainer run these
// functions; they differ only in how attention finds its keys (cache pages, or tensors that remember their gradients).
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/attention/causal_attention.h"
#include "models/layers/linear.h"
#include "models/weights/language_model_config.h"

namespace longshort {

// What a layer computes of each row before rows meet.
struct Projections {
  at::Tensor queries;            // [..., d], scaled by 1/sqrt(head_dim)
  at::Tensor projection_logits;  // [..., H*R]: of the dynamic projection
  at::Tensor keys_values;        // [..., 2, d], before DualLN: a row's key, then its value

  at::Tensor keys() const { return keys_values.select(-2, 0); }
  at::Tensor values() const { return keys_values.select(-2, 1); }
};

struct DecoderLayer {
  // Maps of the same rows are one product: for few rows a call costs more than its arithmetic.
  Linear query_and_logits;  // proj_query, then dconv_1: [d + H*R, d]
  Linear key_and_value;     // proj_key, then proj_val: [2*d, d]
  Linear output;
  Linear window_positions;   // r_net
  Linear chunk_positions;    // r_net_chunk
  at::Tensor window_bias;    // r_w_bias [H, head_dim]
  at::Tensor relative_bias;  // r_r_bias [H, head_dim]
  LayerNorm window_norm;     // DualLN of the window's keys and values
  LayerNorm chunk_norm;      // DualLN of compressed keys and values
  LayerNorm norm1, norm2;
  Linear feed_forward_in, feed_forward_out;
  bool pre_layer_norm = true;
  bool gelu = true;
  int64_t heads = 0;

  // What attention reads, of the layer's input h [..., d].
  at::Tensor AttentionInput(const at::Tensor& hidden) const;
  Projections Project(const at::Tensor& input) const;
  // rows [..., d] -> [..., 2, d], before DualLN.
  at::Tensor KeysAndValues(const at::Tensor& rows) const;
  // The layer's output from its attention input and what attention gave, both [..., d]. The residual branch carries the
  // normalised input, as the official model does.
  at::Tensor Finish(const at::Tensor& input, const at::Tensor& attended) const;

  // The learned positions of this layer, for distances 0 .. W-1 and 0 .. count-1 of the tables [W, d] and [count, d].
  RelativePositions Positions(const at::Tensor& window_table, const at::Tensor& chunk_table) const;
};

}  // namespace longshort
