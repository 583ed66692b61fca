#include "models/families/language_model/decoder.h"

#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/causal_attention/causal_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

// The map whose result is a's result, then b's.
Linear StackRows(const Linear& a, const Linear& b) {
  const auto bias_of = [](const Linear& map) {
    return map.bias.defined() ? map.bias : at::zeros({map.weight.size(0)}, map.weight.options().dtype(at::kFloat));
  };
  return {.weight = at::cat({a.weight, b.weight}),
          .bias = a.bias.defined() || b.bias.defined() ? at::cat({bias_of(a), bias_of(b)}) : at::Tensor()};
}

}  // namespace

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

at::Tensor DecoderLayer::Finish(const at::Tensor& input, const at::Tensor& attended, Dropout* dropout) const {
  const LayerNorm& after_attention = pre_layer_norm ? norm2 : norm1;
  const at::Tensor middle = after_attention(input + Dropped(dropout, output(attended)));
  const at::Tensor inner = gelu ? feed_forward_in.Gelu(middle) : at::relu(feed_forward_in(middle));
  const at::Tensor result = middle + Dropped(dropout, feed_forward_out(Dropped(dropout, inner)));
  return pre_layer_norm ? result : norm2(result);
}

RelativePositions DecoderLayer::Positions(const at::Tensor& window_table, const at::Tensor& chunk_table) const {
  const int64_t head_dim = window_table.size(1) / heads;
  return {.window = window_positions(window_table).view({-1, heads, head_dim}),
          .chunk = chunk_positions(chunk_table).view({-1, heads, head_dim}),
          .window_bias = window_bias,
          .relative_bias = relative_bias};
}

void Decoder::Pack(const std::function<void()>& between) {
  for (DecoderLayer& layer : layers) {
    for (Linear* const map : {&layer.query_and_logits, &layer.key_and_value, &layer.output, &layer.feed_forward_in,
                              &layer.feed_forward_out}) {
      between();
      *map = map->Packed(product_type);
    }
  }
  between();
  output = output.Packed(product_type);
}

void Decoder::Move(const at::Device& device, const std::function<void()>& between) {
  TensorMove move(device);
  move(embedding, output, inverse_frequencies);
  for (DecoderLayer& layer : layers) {
    between();
    move(layer.query_and_logits, layer.key_and_value, layer.output, layer.window_positions, layer.chunk_positions);
    move(layer.feed_forward_in, layer.feed_forward_out);
    move(layer.window_norm, layer.chunk_norm, layer.norm1, layer.norm2);
    move(layer.window_bias, layer.relative_bias);
  }
}

at::Tensor Decoder::Embed(const at::Tensor& ids) const {
  return at::embedding(embedding, ids) * std::sqrt(static_cast<double>(config.model_width));
}

at::Tensor Decoder::Logits(const at::Tensor& hidden) const { return output(hidden); }

at::Tensor Decoder::WindowPositionTable() const {
  return SinusoidalPositions(inverse_frequencies, config.window_length, config.window_position_clamp);
}

at::Tensor Decoder::ChunkPositionTable() const {
  const int64_t chunks = (config.memory_length + config.segment_length) / config.chunk_size - 1;
  return SinusoidalPositions(inverse_frequencies, chunks * config.chunk_rank, config.chunk_position_clamp);
}

Decoder MakeDecoder(const LanguageModelConfig& config, at::ScalarType product_type, const TensorSource& tensor) {
  Decoder decoder;
  decoder.config = config;
  decoder.product_type = product_type;
  const at::ScalarType weight_type = product_type == at::kChar ? at::kFloat : product_type;
  decoder.embedding = tensor("in_emb.weight");
  decoder.output = {.weight = decoder.embedding.to(weight_type), .bias = tensor("out_emb.bias")};
  decoder.inverse_frequencies = tensor("pos_emb.inv_freq");

  for (int64_t index = 0; index < config.layers; ++index) {
    const NamedTensors layer(tensor, "layers." + std::to_string(index) + ".");
    const auto linear = [&](const std::string& name, bool has_bias) {
      return Linear{.weight = layer.Weight(name).to(weight_type), .bias = has_bias ? layer.Bias(name) : at::Tensor()};
    };
    decoder.layers.push_back({
        .query_and_logits = StackRows(linear("attn.proj_query", config.projection_bias), linear("attn.dconv_1", true)),
        .key_and_value =
            StackRows(linear("attn.proj_key", config.projection_bias), linear("attn.proj_val", config.projection_bias)),
        .output = linear("attn.proj_out", config.projection_bias),
        .window_positions = {.weight = layer.Weight("attn.r_net"), .bias = {}},
        .chunk_positions = layer.MakeLinear("attn.r_net_chunk"),
        .window_bias = layer("attn.r_w_bias"),
        .relative_bias = layer("attn.r_r_bias"),
        .window_norm = layer.MakeNorm("attn.dual_ln_win"),
        .chunk_norm = layer.MakeNorm("attn.dual_ln_dproj"),
        .norm1 = layer.MakeNorm("norm1"),
        .norm2 = layer.MakeNorm("norm2"),
        .feed_forward_in = linear("ff.fc1", true),
        .feed_forward_out = linear("ff.fc2", true),
        .pre_layer_norm = config.pre_layer_norm,
        .gelu = config.activation == Activation::kGelu,
        .heads = config.heads,
    });
  }
  return decoder;
}

}  // namespace longshort::models
