#include "models/families/cvt/cvt_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/grad_mode.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/family.h"
#include "models/families/family_loader.h"
#include "models/families/image_network.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {
namespace {

// [batch, d, height, width] -> [batch, height * width, d]. No copy if the memory has this layout.
at::Tensor ToTokens(const at::Tensor& image) { return image.permute({0, 2, 3, 1}).flatten(1, 2); }

// The inverse, always a view.
at::Tensor ToImage(const at::Tensor& tokens, const TokenGrid& grid) {
  return tokens.unflatten(1, {grid.height, grid.width}).permute({0, 3, 1, 2});
}

TokenGrid GridOf(const at::Tensor& image) { return {.height = image.size(2), .width = image.size(3)}; }

// Builds modules from `tensors`.
class Maker final {
 public:
  Maker(const CvtConfig& config, NamedTensors tensors) : config_(config), tensors_(std::move(tensors)) {}

  Maker Sub(const std::string& name) const { return Maker(config_, tensors_.Below(name + ".")); }

  LayerNorm MakeNorm(const std::string& name) const { return tensors_.MakeNorm(name, config_.layer_norm_epsilon); }
  CvtEmbedding MakeEmbedding(const CvtStage& stage) const {
    return {.kernel = tensors_.Weight("embed"),
            .bias = tensors_.Bias("embed"),
            .stride = stage.embedding_stride,
            .padding = stage.embedding_padding,
            .norm = MakeNorm("embed_norm")};
  }
  CvtBlock MakeBlock(const CvtStage& stage) const {
    return {.norm1 = MakeNorm("norm1"),
            .norm2 = MakeNorm("norm2"),
            .attention = Sub("attn").MakeAttention(stage),
            .feed_forward = {.in = tensors_.MakeLinear("fc1"), .out = tensors_.MakeLinear("fc2")}};
  }

 private:
  CvtAttention MakeAttention(const CvtStage& stage) const {
    const bool shared = config_.shared_dual_norm;
    return {.heads = stage.heads,
            .window = {.side = stage.window_size},
            .query = Sub("to_q").MakeNormedConvolution(),
            .key = Sub("to_k").MakeNormedConvolution(),
            .value = Sub("to_v").MakeNormedConvolution(),
            .projection = Sub("to_dyn").MakeStandardizedConvolution(),
            .local_key_norm = MakeNorm("ln_l"),
            .local_value_norm = MakeNorm(shared ? "ln_l" : "ln_l_v"),
            .landmark_key_norm = MakeNorm("ln_g"),
            .landmark_value_norm = MakeNorm(shared ? "ln_g" : "ln_g_v"),
            .output = tensors_.MakeLinear("proj")};
  }
  SeparableConvolution MakeConvolution() const {
    Linear pointwise = tensors_.MakeLinear("pointwise");
    pointwise.weight = pointwise.weight.flatten(1);
    return {.kernel = tensors_.Weight("depthwise"),
            .bias = tensors_.Bias("depthwise"),
            .standardization_epsilon = {},
            .norm = {},
            .pointwise = std::move(pointwise)};
  }
  SeparableConvolution MakeNormedConvolution() const {
    SeparableConvolution convolution = MakeConvolution();
    convolution.norm = BatchNorm{.gain = tensors_.Weight("bn"),
                                 .bias = tensors_.Bias("bn"),
                                 .running_mean = tensors_("bn.running_mean"),
                                 .running_variance = tensors_("bn.running_var"),
                                 .epsilon = config_.batch_norm_epsilon};
    return convolution;
  }
  SeparableConvolution MakeStandardizedConvolution() const {
    SeparableConvolution convolution = MakeConvolution();
    convolution.standardization_epsilon = config_.weight_standardization_epsilon;
    return convolution;
  }

  const CvtConfig& config_;
  const NamedTensors tensors_;
};

}  // namespace

at::Tensor CvtBlock::operator()(const at::Tensor& tokens, const TokenGrid& grid, BatchStatistics* statistics,
                                ItemAttention& item_attention) const {
  const at::Tensor normed = item_attention.Norm(norm1, tokens);
  const at::Tensor middle =
      item_attention.Add(attention.output, attention.Attended(normed, grid, statistics, item_attention), tokens);
  const at::Tensor inner = item_attention.Gelu(feed_forward.in, item_attention.Norm(norm2, middle));
  return item_attention.Add(feed_forward.out, inner, middle);
}

at::Tensor CvtEmbedding::operator()(const at::Tensor& image) const {
  const at::Tensor embedded = at::conv2d(image, kernel, bias, stride, padding);
  return ToImage(norm(ToTokens(embedded)), GridOf(embedded));
}

at::Tensor CvtStageLayers::operator()(const at::Tensor& image, BatchStatistics* statistics,
                                      ItemAttention& item_attention) const {
  const at::Tensor embedded = embedding(image);
  const TokenGrid grid = GridOf(embedded);
  at::Tensor tokens = ToTokens(embedded);
  for (const CvtBlock& block : blocks) tokens = block(tokens, grid, statistics, item_attention);
  return ToImage(tokens, grid);
}

at::Tensor CvtNetwork::Features(const at::Tensor& images, BatchStatistics* statistics,
                                ItemAttention& item_attention) const {
  at::Tensor image =
      images.to(stages.front().embedding.kernel.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
  for (const CvtStageLayers& stage : stages) image = stage(image, statistics, item_attention);
  return norm(ToTokens(image)).mean(1);
}

at::Tensor CvtNetwork::Logits(const at::Tensor& images, BatchStatistics* statistics) const {
  CpuItemAttention item_attention;
  return head(Features(images, statistics, item_attention)).to(images.scalar_type());
}

void CvtNetwork::UpdateRunningStatistics(const BatchStatistics& statistics, double momentum) const {
  const at::NoGradGuard no_gradients;
  size_t index = 0;
  for (const CvtStageLayers& stage : stages) {
    for (const CvtBlock& block : stage.blocks) {
      for (const BatchNorm* const norm : block.attention.BatchNorms()) {
        norm->running_mean.lerp_(statistics.means[index], momentum);
        norm->running_variance.lerp_(statistics.variances[index], momentum);
        ++index;
      }
    }
  }
}

void CvtNetwork::PrepareForServing() {
  for (CvtStageLayers& stage : stages) {
    for (CvtBlock& block : stage.blocks) block.attention.PrepareForServing();
  }
}

void CvtNetwork::MoveBy(TensorMove& move) {
  for (CvtStageLayers& stage : stages) {
    move(stage.embedding.kernel, stage.embedding.bias, stage.embedding.norm);
    for (CvtBlock& block : stage.blocks) {
      move.AsTheyAre(block.norm1, block.norm2);  // kernels read them
      block.attention.MoveBy(move);
      block.feed_forward.MoveBy(move);
    }
  }
  move(norm, head);
}

CvtNetwork MakeCvtNetwork(const CvtConfig& config, const TensorSource& tensor) {
  const NamedTensors tensors(tensor);
  const Maker model(config, tensors);
  CvtNetwork network;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    const Maker part = model.Sub(absl::StrCat("stages.", index));
    CvtStageLayers layers{.embedding = part.MakeEmbedding(stage), .blocks = {}};
    for (int64_t block = 0; block < stage.depth; ++block) {
      layers.blocks.push_back(part.Sub(absl::StrCat("blocks.", block)).MakeBlock(stage));
    }
    network.stages.push_back(std::move(layers));
  }
  network.norm = model.MakeNorm("norm");
  network.head = tensors.MakeLinear("head");
  return network;
}

namespace {

class ServedCvt final : public ImageNetwork {
 public:
  ServedCvt(const CvtConfig& config, CvtNetwork network)
      : ImageNetwork(ShapeOf(config)), config_(config), network_(std::move(network)) {
    network_.PrepareForServing();
  }

  absl::Status CheckSize(int64_t height, int64_t width) const override {
    return CheckCvtImageSize(config_, height, width);
  }
  at::Tensor Features(const at::Tensor& images, ItemAttention& attention) const override {
    return network_.Features(images, /*statistics=*/nullptr, attention);
  }
  const Linear& head() const override { return network_.head; }
  int64_t MultiplyAdds(int64_t height, int64_t width) const override {
    return static_cast<int64_t>(CvtMultiplyAdds(config_, height, width));
  }
  std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const override {
    auto copy = std::make_shared<ServedCvt>(*this);
    copy->network_.MoveBy(move);
    return copy;
  }

 private:
  CvtConfig config_;
  CvtNetwork network_;
};

int64_t WidestHead(const CvtConfig& config) {
  int64_t widest = 0;
  for (const CvtStage& stage : config.stages) widest = std::max(widest, stage.width / stage.heads);
  return widest;
}

}  // namespace

absl::StatusOr<ClassifierWeights> LoadCvt(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const CvtConfig config, ParseCvtConfig(directory.config_text, directory.config_path()));
  const std::vector<TensorShape> tensors = CvtTensors(config);
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, tensors));
  return LoadServedClassifier(ImageClassifierInfo("cvt", config.stages.back().width, config, tensors, options),
                              WidestHead(config), directory, options, [&](const TensorSource& read) {
                                return std::make_shared<ServedCvt>(config, MakeCvtNetwork(config, read));
                              });
}

namespace cvt {

FamilyLoader Loader() { return {.architecture = "cvt", .load = LoadImages<LoadCvt>, .sizes = ImageSizes}; }

}  // namespace cvt
}  // namespace longshort::models
