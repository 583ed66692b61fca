#include "models/families/vil/vil_network.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/families/family.h"
#include "models/families/family_loader.h"
#include "models/families/image_network.h"
#include "models/families/vil/vil_config.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

constexpr double kNormEpsilon = 1e-6;
constexpr double kDualNormEpsilon = 1e-5;

VilSparseAttention MakeSparseAttention(const VilStage& stage, int64_t side, const at::Tensor& bias_index,
                                       const NamedTensors& part) {
  VilSparseAttention attention{.query_key_value = part.MakeLinear("qkv"),
                               .dynamic_projection = {},
                               .landmark_norm = part.MakeNorm("dual_ln_dp", kDualNormEpsilon),
                               .full_norm = part.MakeNorm("dual_ln_full", kDualNormEpsilon),
                               .bias = {.table = {}, .index = bias_index},
                               .output = part.MakeLinear("proj"),
                               .heads = stage.heads,
                               .global_tokens = stage.global_tokens,
                               .window_size = stage.window_size,
                               .side = side};
  if (stage.projection_rank > 0) attention.dynamic_projection = part.MakeLinear("to_dynamic_projection");
  if (!stage.absolute_positions) attention.bias.table = part("local_relative_position_bias_table");
  return attention;
}

VilFullAttention MakeFullAttention(const VilStage& stage, const at::Tensor& bias_index, const NamedTensors& part) {
  VilFullAttention attention{.query_key_value = part.MakeLinear("qkv"),
                             .output = part.MakeLinear("proj"),
                             .bias_table = {},
                             .bias_index = bias_index,
                             .global_biases = {},
                             .between_globals = {},
                             .heads = stage.heads};
  if (stage.absolute_positions) return attention;
  attention.bias_table = part("local_relative_position_bias_table");
  if (stage.global_tokens == 0) return attention;
  attention.global_biases = part("g2l_relative_position_bias");
  attention.between_globals = part("g2g_relative_position_bias");
  return attention;
}

VilStageNetwork MakeStage(const VilConfig& config, size_t index, const TensorSource& tensor) {
  const VilStage& stage = config.stages[index];
  const int64_t side = config.GridSide(index);
  const auto module = [&](int64_t number, std::string_view inner) {
    return NamedTensors(tensor, absl::StrCat("layer", stage.number, ".", number, std::string(inner)));
  };
  const NamedTensors embedding = module(0, ".");
  VilStageNetwork network;
  network.patch_weight = embedding("proj.weight");
  network.patch_bias = embedding("proj.bias");
  network.patch_size = stage.patch_size;
  network.global_count = stage.global_tokens;
  network.side = side;
  if (config.embedding_norm) network.embedding_norm = embedding.MakeNorm("norm_embed", kNormEpsilon);
  if (stage.global_tokens > 0) network.global_tokens = embedding("cls_token");
  if (stage.absolute_positions) {
    if (stage.global_tokens > 0) network.global_positions = embedding("cls_pos_embed");
    network.row_positions = embedding("x_pos_embed");
    network.column_positions = embedding("y_pos_embed");
  }

  at::Tensor bias_index;  // shared by all pairs
  if (!stage.absolute_positions && stage.pairs > 0) {
    const at::Device device = network.patch_weight.device();
    bias_index = stage.sparse ? WindowBiasIndex(stage.window_size, device) : GridBiasIndex(side, device);
  }
  for (int64_t pair = 0; pair < stage.pairs; ++pair) {
    const NamedTensors attention = module(2 * pair + 1, ".attn."), feed_forward = module(2 * pair + 2, ".mlp.");
    VilPair& made = network.pairs.emplace_back();
    made.attention_norm = module(2 * pair + 1, ".").MakeNorm("norm", kNormEpsilon);
    if (stage.sparse) {
      made.attention = MakeSparseAttention(stage, side, bias_index, attention);
    } else {
      made.attention = MakeFullAttention(stage, bias_index, attention);
    }
    made.feed_forward_norm = module(2 * pair + 2, ".").MakeNorm("norm", kNormEpsilon);
    made.feed_forward = {.in = feed_forward.MakeLinear("fc1"), .out = feed_forward.MakeLinear("fc2")};
  }
  return network;
}

// Positions of the patches, row-major: half of the channels encodes the row, half the column. [1, n^2, d].
at::Tensor PatchPositions(const at::Tensor& row_positions, const at::Tensor& column_positions) {
  const int64_t side = row_positions.size(1), half = row_positions.size(2);
  const at::Tensor rows = row_positions.unsqueeze(2).expand({1, side, side, half});
  const at::Tensor columns = column_positions.unsqueeze(1).expand({1, side, side, half});
  return at::cat({rows, columns}, 3).flatten(1, 2);
}

}  // namespace

at::Tensor VilPair::operator()(const at::Tensor& tokens, ItemAttention& item_attention) const {
  const at::Tensor normed = item_attention.Norm(attention_norm, tokens);
  const auto* const sparse = std::get_if<VilSparseAttention>(&attention);
  at::Tensor middle;
  if (sparse != nullptr) {
    middle = item_attention.Add(sparse->output, sparse->Attended(normed, item_attention), tokens);
  } else {
    const auto& full = std::get<VilFullAttention>(attention);
    middle = item_attention.Add(full.output, full.Attended(normed), tokens);
  }
  const at::Tensor inner = item_attention.Gelu(feed_forward.in, item_attention.Norm(feed_forward_norm, middle));
  return item_attention.Add(feed_forward.out, inner, middle);
}

void VilPair::MoveBy(TensorMove& move) {
  move.AsTheyAre(attention_norm, feed_forward_norm);  // kernels read them
  std::visit([&move](auto& kind) { kind.MoveBy(move); }, attention);
  feed_forward.MoveBy(move);
}

at::Tensor VilStageNetwork::operator()(const at::Tensor& image, ItemAttention& item_attention) const {
  const at::Tensor convolved = at::conv2d(image, patch_weight, patch_bias, {patch_size, patch_size});
  at::Tensor tokens = convolved.flatten(2).transpose(1, 2);
  if (embedding_norm.gain.defined()) tokens = embedding_norm(tokens);
  if (row_positions.defined()) tokens = tokens + PatchPositions(row_positions, column_positions);
  if (global_tokens.defined()) {
    const at::Tensor placed = global_positions.defined() ? global_tokens + global_positions : global_tokens;
    tokens = at::cat({placed.expand({image.size(0), -1, -1}), tokens}, 1);
  }
  for (const VilPair& pair : pairs) tokens = pair(tokens, item_attention);
  return tokens;
}

at::Tensor VilStageNetwork::Image(const at::Tensor& tokens) const {
  return tokens.narrow(1, global_count, side * side).transpose(1, 2).unflatten(2, {side, side});
}

void VilStageNetwork::MoveBy(TensorMove& move) {
  move(patch_weight, patch_bias, embedding_norm, global_tokens, global_positions, row_positions, column_positions);
  for (VilPair& pair : pairs) pair.MoveBy(move);
}

at::Tensor VilNetwork::Features(const at::Tensor& images, ItemAttention& item_attention) const {
  at::Tensor tokens = stages.front()(images.to(stages.front().patch_weight.scalar_type()), item_attention);
  for (size_t index = 1; index < stages.size(); ++index) {
    tokens = stages[index](stages[index - 1].Image(tokens), item_attention);
  }
  if (pools_all_tokens) return item_attention.Norm(norm, tokens).mean(1);
  return item_attention.Norm(norm, tokens.select(1, 0));
}

void VilNetwork::MoveBy(TensorMove& move) {
  for (VilStageNetwork& stage : stages) stage.MoveBy(move);
  move(head);
  move.AsTheyAre(norm);  // a kernel reads it
}

VilNetwork MakeVilNetwork(const VilConfig& config, const TensorSource& tensor) {
  VilNetwork network;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    network.stages.push_back(MakeStage(config, index, tensor));
  }
  const NamedTensors last(tensor);
  network.norm = last.MakeNorm("norm", kNormEpsilon);
  network.head = last.MakeLinear("head");
  network.pools_all_tokens = config.PoolsAllTokens();
  return network;
}

namespace {

class ServedVil final : public ImageNetwork {
 public:
  ServedVil(const VilConfig& config, VilNetwork network)
      : ImageNetwork(ShapeOf(config)), image_size_(config.image_size), network_(std::move(network)) {
    for (const StageCost& cost : VilCosts(config)) multiply_adds_ += static_cast<int64_t>(cost.multiply_adds);
  }

  absl::Status CheckSize(int64_t height, int64_t width) const override {
    if (height == image_size_ && width == image_size_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("the images have %d x %d pixels (height x width), this model takes %d x %d", height, width,
                        image_size_, image_size_));
  }
  at::Tensor Features(const at::Tensor& images, ItemAttention& attention) const override {
    return network_.Features(images, attention);
  }
  const Linear& head() const override { return network_.head; }
  int64_t MultiplyAdds(int64_t, int64_t) const override { return multiply_adds_; }
  std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const override {
    auto copy = std::make_shared<ServedVil>(*this);
    copy->network_.MoveBy(move);
    return copy;
  }

 private:
  int64_t image_size_;
  int64_t multiply_adds_ = 0;
  VilNetwork network_;
};

int64_t WidestHead(const VilConfig& config) {
  int64_t widest = 0;
  for (const VilStage& stage : config.stages) {
    if (stage.sparse) widest = std::max(widest, stage.width / stage.heads);
  }
  return widest;
}

}  // namespace

absl::StatusOr<ClassifierWeights> LoadVil(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const VilConfig config, ParseVilConfig(directory.config_text, directory.config_path()));
  const std::vector<TensorShape> tensors = VilTensors(config);
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, tensors));
  ClassifierInfo info = ImageClassifierInfo("vil", config.stages.back().width, config, tensors, options);
  info.has_cls = !config.PoolsAllTokens();
  return LoadServedClassifier(std::move(info), WidestHead(config), directory, options, [&](const TensorSource& read) {
    return std::make_shared<ServedVil>(config, MakeVilNetwork(config, read));
  });
}

namespace vil {

absl::StatusOr<WeightSizes> Sizes(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const VilConfig config, ParseVilConfig(directory.config_text, directory.config_path()));
  return ClassifierSizes(directory, options, /*packs=*/true, VilKernelBiasElements(config),
                         VilPairBiasElements(config));
}

FamilyLoader Loader() { return {.architecture = "vil", .load = LoadImages<LoadVil>, .sizes = Sizes}; }

}  // namespace vil
}  // namespace longshort::models
