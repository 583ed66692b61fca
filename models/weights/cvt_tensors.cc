#include "models/weights/cvt_tensors.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longshort {
namespace {

// Appends the tensors of one module, whose names begin with `prefix`.
class Module final {
 public:
  Module(std::string prefix, std::vector<TensorShape>& tensors) : prefix_(std::move(prefix)), tensors_(tensors) {}

  void Add(const std::string& name, std::vector<int64_t> shape) {
    tensors_.push_back({absl::StrCat(prefix_, name), std::move(shape)});
  }
  // A weight of this shape and a bias of its first dimension: of a map, a convolution or (one dimension) a norm.
  void AddAffine(const std::string& name, std::vector<int64_t> shape) {
    const int64_t out = shape.front();
    Add(absl::StrCat(name, ".weight"), std::move(shape));
    Add(absl::StrCat(name, ".bias"), {out});
  }
  Module Sub(const std::string& name) { return Module(absl::StrCat(prefix_, name, "."), tensors_); }

 private:
  std::string prefix_;
  std::vector<TensorShape>& tensors_;
};

void AddSeparable(int64_t out, int64_t in, int64_t kernel, bool batch_norm, Module convolution) {
  convolution.AddAffine("depthwise", {in, 1, kernel, kernel});
  if (batch_norm) {
    convolution.AddAffine("bn", {in});
    convolution.Add("bn.running_mean", {in});
    convolution.Add("bn.running_var", {in});
  }
  convolution.AddAffine("pointwise", {out, in, 1, 1});
}

void AddBlock(const CvtConfig& config, const CvtStage& stage, Module block) {
  const int64_t width = stage.width;
  block.AddAffine("norm1", {width});
  Module attention = block.Sub("attn");
  for (const char* const name : {"to_q", "to_k", "to_v"}) {
    AddSeparable(width, width, config.projection_kernel, true, attention.Sub(name));
  }
  AddSeparable(stage.heads * stage.projection_rank, width, config.dynamic_projection_kernel, false,
               attention.Sub("to_dyn"));
  attention.AddAffine("ln_l", {width});
  attention.AddAffine("ln_g", {width});
  if (!config.shared_dual_norm) {
    attention.AddAffine("ln_l_v", {width});
    attention.AddAffine("ln_g_v", {width});
  }
  attention.AddAffine("proj", {width, width});
  block.AddAffine("norm2", {width});
  block.AddAffine("fc1", {config.feed_forward_ratio * width, width});
  block.AddAffine("fc2", {width, config.feed_forward_ratio * width});
}

}  // namespace

std::vector<TensorShape> CvtTensors(const CvtConfig& config) {
  std::vector<TensorShape> tensors;
  Module model("", tensors);
  int64_t channels = config.channels;
  for (size_t index = 0; index < config.stages.size(); ++index) {
    const CvtStage& stage = config.stages[index];
    Module part = model.Sub(absl::StrCat("stages.", index));
    part.AddAffine("embed", {stage.width, channels, stage.embedding_kernel, stage.embedding_kernel});
    part.AddAffine("embed_norm", {stage.width});
    for (int64_t block = 0; block < stage.depth; ++block) {
      AddBlock(config, stage, part.Sub(absl::StrCat("blocks.", block)));
    }
    channels = stage.width;
  }
  model.AddAffine("norm", {channels});
  model.AddAffine("head", {config.classes, channels});
  return tensors;
}

bool IsRunningStatistic(std::string_view tensor_name) {
  return tensor_name.ends_with(".running_mean") || tensor_name.ends_with(".running_var");
}

int64_t CountParameters(const CvtConfig& config) {
  std::vector<TensorShape> tensors = CvtTensors(config);
  std::erase_if(tensors, [](const TensorShape& tensor) { return IsRunningStatistic(tensor.name); });
  return CountElements(tensors);
}

}  // namespace longshort
