#include "models/weights/vil_tensors.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

// Appends the tensors of one part of the network, whose names begin with `prefix`.
class Part final {
 public:
  Part(std::string prefix, std::vector<TensorShape>& tensors) : prefix_(std::move(prefix)), tensors_(tensors) {}

  void Add(const std::string& name, std::vector<int64_t> shape) {
    tensors_.push_back({absl::StrCat(prefix_, name), std::move(shape)});
  }
  void AddNorm(const std::string& name, int64_t width) {
    Add(absl::StrCat(name, ".weight"), {width});
    Add(absl::StrCat(name, ".bias"), {width});
  }
  void AddLinear(const std::string& name, int64_t out, int64_t in) {
    Add(absl::StrCat(name, ".weight"), {out, in});
    Add(absl::StrCat(name, ".bias"), {out});
  }

 private:
  std::string prefix_;
  std::vector<TensorShape>& tensors_;
};

// `side`: patches along a side of the stage's grid.
void AddEmbedding(const VilStage& stage, int64_t channels, int64_t side, bool norm, Part embedding) {
  embedding.Add("proj.weight", {stage.width, channels, stage.patch_size, stage.patch_size});
  embedding.Add("proj.bias", {stage.width});
  if (norm) embedding.AddNorm("norm_embed", stage.width);
  if (stage.global_tokens > 0) embedding.Add("cls_token", {1, stage.global_tokens, stage.width});
  if (!stage.absolute_positions) return;
  if (stage.global_tokens > 0) embedding.Add("cls_pos_embed", {1, stage.global_tokens, stage.width});
  embedding.Add("x_pos_embed", {1, side, stage.width / 2});
  embedding.Add("y_pos_embed", {1, side, stage.width / 2});
}

void AddSparseAttention(const VilStage& stage, Part attention) {
  if (stage.projection_rank > 0) {
    attention.AddLinear("to_dynamic_projection", stage.heads * stage.projection_rank, stage.width);
  }
  attention.AddNorm("dual_ln_dp", stage.width);
  attention.AddNorm("dual_ln_full", stage.width);
  if (!stage.absolute_positions) {
    attention.Add("local_relative_position_bias_table", {WindowBiasRows(stage.window_size), stage.heads});
  }
}

void AddFullAttention(const VilStage& stage, int64_t side, Part attention) {
  if (stage.absolute_positions) return;
  const int64_t offsets = 2 * side - 1;  // of two patches, along one axis
  attention.Add("local_relative_position_bias_table", {offsets * offsets, stage.heads});
  if (stage.global_tokens == 0) return;
  attention.Add("g2l_relative_position_bias", {2, stage.heads, stage.global_tokens});
  attention.Add("g2g_relative_position_bias", {stage.heads, stage.global_tokens, stage.global_tokens});
}

}  // namespace

int64_t WindowBiasRows(int64_t window_size) {
  const int64_t half = window_size / 2;
  return 2 * (window_size + half - 1) * (2 * half + window_size + 1) + 1;
}

std::vector<TensorShape> VilTensors(const VilConfig& config) {
  std::vector<TensorShape> tensors;
  int64_t channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const VilStage& stage = config.stages[index];
    const int64_t side = config.GridSide(index), width = stage.width;
    const auto module = [&](int64_t number) { return absl::StrCat("layer", stage.number, ".", number, "."); };
    AddEmbedding(stage, channels, side, config.embedding_norm, Part(module(0), tensors));
    for (int64_t pair = 0; pair < stage.pairs; ++pair) {
      const std::string attention = module(2 * pair + 1), feed_forward = module(2 * pair + 2);
      Part(attention, tensors).AddNorm("norm", width);
      Part attention_map(absl::StrCat(attention, "attn."), tensors);
      attention_map.AddLinear("qkv", 3 * width, width);
      if (stage.sparse) {
        AddSparseAttention(stage, attention_map);
      } else {
        AddFullAttention(stage, side, attention_map);
      }
      attention_map.AddLinear("proj", width, width);
      Part(feed_forward, tensors).AddNorm("norm", width);
      Part mlp(absl::StrCat(feed_forward, "mlp."), tensors);
      mlp.AddLinear("fc1", 4 * width, width);
      mlp.AddLinear("fc2", width, 4 * width);
    }
    channels = width;
  }
  Part head("", tensors);
  head.AddNorm("norm", channels);
  head.AddLinear("head", config.classes, channels);
  return tensors;
}

}  // namespace longshort
