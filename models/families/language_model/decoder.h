// The weights of a language model as tensors, for loading, serving and training.
//
// The functions of a layer here are row-wise. The step on the CPU and the trainer call them; these differ only in the
// source of attention's keys (cache pages, or tensors with gradients). gpu_decoder.h has the GPU's form.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/families/language_model/language_model_config.h"
#include "models/ops/causal_attention/causal_attention.h"
#include "models/ops/layers/dropout.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// The results of a layer for each row, before attention.
struct Projections {
  at::Tensor queries;            // [..., d], scaled by 1/sqrt(head_dim)
  at::Tensor projection_logits;  // [..., H*R]: of the dynamic projection
  at::Tensor keys_values;        // [..., 2, d], before DualLN: a row's key, then its value

  at::Tensor keys() const { return keys_values.select(-2, 0); }
  at::Tensor values() const { return keys_values.select(-2, 1); }
};

struct DecoderLayer {
  // Maps of the same rows are one product, because a call with few rows costs more than its arithmetic.
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

  // The input of attention, from the layer's input h [..., d].
  at::Tensor AttentionInput(const at::Tensor& hidden) const;
  Projections Project(const at::Tensor& input) const;
  // rows [..., d] -> [..., 2, d], before DualLN.
  at::Tensor KeysAndValues(const at::Tensor& rows) const;
  // The layer's output, from the input and the output of attention, both [..., d]. The residual branch carries the
  // normalised input, as the official model does. `dropout` is that of a step of training; null: none.
  at::Tensor Finish(const at::Tensor& input, const at::Tensor& attended, Dropout* dropout = nullptr) const;

  // The learned positions of this layer, for distances 0 .. W-1 and 0 .. count-1 of the tables [W, d] and [count, d].
  RelativePositions Positions(const at::Tensor& window_table, const at::Tensor& chunk_table) const;
};

struct Decoder {
  LanguageModelConfig config;
  at::ScalarType product_type;     // of the matrices that multiply tokens: kFloat, kBFloat16 or kChar (int8)
  at::Tensor embedding;            // [V, d], float32; also the output map
  Linear output;                   // the embedding in the precision of the products, and a bias [V]
  at::Tensor inverse_frequencies;  // [d/2], not trained
  std::vector<DecoderLayer> layers;

  // For serving only: packs the matrices that multiply tokens as elements of product_type (Linear::Packed). Takes
  // seconds for a large model, so it calls `between` before each matrix, which may throw.
  void Pack(const std::function<void()>& between);
  // Moves all tensors to a GPU. Calls `between` before each layer, which may throw.
  void Move(const at::Device& device, const std::function<void()>& between);

  // ids [...] int32 or int64 -> [..., d], scaled by sqrt(d).
  at::Tensor Embed(const at::Tensor& ids) const;
  // hidden [..., d] -> logits [..., V], float32.
  at::Tensor Logits(const at::Tensor& hidden) const;

  // Position vectors before a layer's map: [W, d], and [((M+L)/C - 1) * R, d].
  at::Tensor WindowPositionTable() const;
  at::Tensor ChunkPositionTable() const;
};

// Builds the decoder from `tensor`, which returns a stored tensor by its name in model.safetensors (float32, with the
// shape in LanguageModelTensors). Matrices that multiply tokens are cast to bfloat16 if that is `product_type`; kChar
// does not change them before Pack. All others stay float32.
Decoder MakeDecoder(const LanguageModelConfig& config, at::ScalarType product_type, const TensorSource& tensor);

// --- whole segments of a batch of streams: differentiable; the trainer runs it, and it is the simple reference of the
// served step (transformer_ls.h) ---

// The memory of a batch of streams between calls, for one layer. Gradients do not pass through it.
struct LayerMemory {
  at::Tensor window_keys, window_values;  // [batch, W-1, d], after DualLN
  at::Tensor memory_keys, memory_values;  // [batch, M/C*R, d], compressed ("mix, then project"), oldest first
};

// One LayerMemory per layer.
using StreamMemory = std::vector<LayerMemory>;

// The memory before a stream's first token: M zero rows in every layer.
StreamMemory ZeroMemory(const Decoder& decoder, int64_t batch);

// Reads `ids` [batch, T] int64, T a multiple of L, from the start of a segment. Replaces `memory` by the memory after
// them.
//   dropout  of a step of training, with a seed for each stream, in the official places: embedded rows, the window's
//            positions, attention's and the feed-forward part's results, GELU, and the last layer's rows; null: none
//   returns  logits [batch, T, V]
at::Tensor ForwardSegments(const Decoder& decoder, const at::Tensor& ids, StreamMemory& memory,
                           Dropout* dropout = nullptr);

}  // namespace longshort::models
