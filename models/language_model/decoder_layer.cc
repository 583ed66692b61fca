#include "models/language_model/decoder_layer.h"

#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort {

at::Tensor DecoderLayer::AttentionInput(const at::Tensor& hidden) const {
  return pre_layer_norm ? norm1(hidden) : hidden;
}

Projections DecoderLayer::Project(const at::Tensor& input) const {
  const int64_t width = input.size(-1);
  const double head_dim = static_cast<double>(width) / static_cast<double>(heads);
  const at::Tensor product = query_and_logits(input);
  return {.queries = product.narrow(-1, 0, width) / std::sqrt(head_dim),
          .projection_logits = product.narrow(-1, width, product.size(-1) - width),
          .keys_values = KeysAndValues(input)};
}

at::Tensor DecoderLayer::KeysAndValues(const at::Tensor& rows) const {
  return key_and_value(rows).unflatten(-1, {2, rows.size(-1)});
}

at::Tensor DecoderLayer::Finish(const at::Tensor& input, const at::Tensor& attended) const {
  const LayerNorm& after_attention = pre_layer_norm ? norm2 : norm1;
  const at::Tensor middle = after_attention(input + output(attended));
  const at::Tensor inner = feed_forward_in(middle);
  const at::Tensor result = middle + feed_forward_out(gelu ? at::gelu(inner) : at::relu(inner));
  return pre_layer_norm ? result : norm2(result);
}

RelativePositions DecoderLayer::Positions(const at::Tensor& window_table, const at::Tensor& chunk_table) const {
  const int64_t head_dim = window_table.size(1) / heads;
  return {.window = window_positions(window_table).view({-1, heads, head_dim}),
          .chunk = chunk_positions(chunk_table).view({-1, heads, head_dim}),
          .window_bias = window_bias,
          .relative_bias = relative_bias};
}

}  // namespace longshort
