#include "models/weights/language_model_tensors.h"

#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/weights/strict_json.h"
#include "models/weights/tensor_values.h"

namespace longshort {
namespace {

constexpr std::string_view kPositionFrequencies = "pos_emb.inv_freq";

std::string ShapeText(absl::Span<const int64_t> shape) { return absl::StrFormat("[%s]", absl::StrJoin(shape, ",")); }

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

absl::Status CheckTensors(const SafetensorsFile& file, const LanguageModelConfig& config) {
  const auto wrong = [&file](std::string_view tensor, std::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: tensor %s %s", file.name(), QuoteForMessage(tensor), reason));
  };
  std::set<std::string_view> known;
  const std::vector<TensorShape> expected = LanguageModelTensors(config);
  for (const TensorShape& tensor : expected) {
    known.insert(tensor.name);
    const TensorView* found = file.Find(tensor.name);
    if (found == nullptr) return wrong(tensor.name, "is missing");
    if (found->shape != tensor.shape) {
      return wrong(tensor.name, absl::StrFormat("has shape %s, the configuration makes it %s", ShapeText(found->shape),
                                                ShapeText(tensor.shape)));
    }
    if (!IsFloatType(found->type)) {
      return wrong(tensor.name, absl::StrFormat("has type %s, it must be F32, F16 or BF16", DataTypeName(found->type)));
    }
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (known.count(name) == 0) return wrong(name, "is unknown");
  }
  return absl::OkStatus();
}

}  // namespace longshort
