#include "models/language_model/decoder.h"

#include <cmath>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/attention/position_tables.h"

namespace longshort {
namespace {

// The map that gives what `a` gives, then what `b` gives.
Linear OneBelowTheOther(const Linear& a, const Linear& b) {
  const auto bias_of = [](const Linear& map) {
    return map.bias.defined() ? map.bias : at::zeros({map.weight.size(0)}, map.weight.options().dtype(at::kFloat));
  };
  return {.weight = at::cat({a.weight, b.weight}),
          .bias = a.bias.defined() || b.bias.defined() ? at::cat({bias_of(a), bias_of(b)}) : at::Tensor()};
}

}  // namespace

void Decoder::Pack(const std::function<void()>& between) {
  for (DecoderLayer& layer : layers) {
    for (Linear* const map : {&layer.query_and_logits, &layer.key_and_value, &layer.output, &layer.feed_forward_in,
                              &layer.feed_forward_out}) {
      between();
      *map = map->Packed();
    }
  }
  between();
  output = output.Packed();
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

Decoder MakeDecoder(const LanguageModelConfig& config, at::ScalarType product_type,
                    const std::function<at::Tensor(const std::string& name)>& tensor) {
  Decoder decoder;
  decoder.config = config;
  decoder.embedding = tensor("in_emb.weight");
  decoder.output = {.weight = decoder.embedding.to(product_type), .bias = tensor("out_emb.bias")};
  decoder.inverse_frequencies = tensor("pos_emb.inv_freq");

  for (int64_t index = 0; index < config.layers; ++index) {
    const std::string layer_name = "layers." + std::to_string(index) + ".";
    const auto map = [&](const std::string& name, bool has_bias, at::ScalarType type) {
      return Linear{.weight = tensor(layer_name + name + ".weight").to(type),
                    .bias = has_bias ? tensor(layer_name + name + ".bias") : at::Tensor()};
    };
    const auto linear = [&](const std::string& name, bool has_bias) { return map(name, has_bias, product_type); };
    const auto norm = [&](const std::string& name) {
      return LayerNorm{.gain = tensor(layer_name + name + ".weight"), .bias = tensor(layer_name + name + ".bias")};
    };
    decoder.layers.push_back({
        .query_and_logits =
            OneBelowTheOther(linear("attn.proj_query", config.projection_bias), linear("attn.dconv_1", true)),
        .key_and_value = OneBelowTheOther(linear("attn.proj_key", config.projection_bias),
                                          linear("attn.proj_val", config.projection_bias)),
        .output = linear("attn.proj_out", config.projection_bias),
        .window_positions = map("attn.r_net", false, at::kFloat),
        .chunk_positions = map("attn.r_net_chunk", true, at::kFloat),
        .window_bias = tensor(layer_name + "attn.r_w_bias"),
        .relative_bias = tensor(layer_name + "attn.r_r_bias"),
        .window_norm = norm("attn.dual_ln_win"),
        .chunk_norm = norm("attn.dual_ln_dproj"),
        .norm1 = norm("norm1"),
        .norm2 = norm("norm2"),
        .feed_forward_in = linear("ff.fc1", true),
        .feed_forward_out = linear("ff.fc2", true),
        .pre_layer_norm = config.pre_layer_norm,
        .gelu = config.activation == Activation::kGelu,
        .heads = config.heads,
    });
  }
  return decoder;
}

}  // namespace longshort
