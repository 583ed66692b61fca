#include "models/weights/language_model_tensors.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"

namespace longshort {
namespace {

constexpr std::string_view kPositionFrequencies = "pos_emb.inv_freq";

void AppendLayer(const LanguageModelConfig& config, int64_t layer, std::vector<TensorShape>& tensors) {
  const int64_t d = config.model_width;
  const auto add = [&](std::string_view name, std::vector<int64_t> shape) {
    tensors.push_back({absl::StrFormat("layers.%d.%s", layer, name), std::move(shape)});
  };
  const auto add_norm = [&](std::string_view name) {
    add(absl::StrFormat("%s.weight", name), {d});
    add(absl::StrFormat("%s.bias", name), {d});
  };
  const auto add_linear = [&](std::string_view name, int64_t out, int64_t in, bool bias) {
    add(absl::StrFormat("%s.weight", name), {out, in});
    if (bias) add(absl::StrFormat("%s.bias", name), {out});
  };

  add_norm("norm1");
  add("attn.r_r_bias", {config.heads, d / config.heads});
  add("attn.r_w_bias", {config.heads, d / config.heads});
  add_linear("attn.dconv_1", config.heads * config.chunk_rank, d, true);
  add_linear("attn.r_net", d, d, false);
  add_linear("attn.r_net_chunk", d, d, true);
  add_linear("attn.proj_query", d, d, config.projection_bias);
  add_linear("attn.proj_key", d, d, config.projection_bias);
  add_linear("attn.proj_val", d, d, config.projection_bias);
  add_linear("attn.proj_out", d, d, config.projection_bias);
  add_norm("attn.dual_ln_dproj");
  add_norm("attn.dual_ln_win");
  add_norm("norm2");
  add_linear("ff.fc1", config.feed_forward_width, d, true);
  add_linear("ff.fc2", d, config.feed_forward_width, true);
}

}  // namespace

std::vector<TensorShape> LanguageModelTensors(const LanguageModelConfig& config) {
  std::vector<TensorShape> tensors = {
      {"in_emb.weight", {config.vocabulary_size, config.model_width}},
      {"out_emb.bias", {config.vocabulary_size}},
      {std::string(kPositionFrequencies), {config.model_width / 2}},
  };
  for (int64_t layer = 0; layer < config.layers; ++layer) AppendLayer(config, layer, tensors);
  return tensors;
}

int64_t CountParameters(const LanguageModelConfig& config) {
  int64_t count = 0;
  for (const TensorShape& tensor : LanguageModelTensors(config)) {
    if (tensor.name != kPositionFrequencies) count += *ElementCount(tensor.shape);
  }
  return count;
}

}  // namespace longshort
