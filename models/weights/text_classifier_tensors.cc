#include "models/weights/text_classifier_tensors.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace longshort {
namespace {

class TensorList final {
 public:
  void Add(std::string name, std::vector<int64_t> shape) { tensors_.push_back({std::move(name), std::move(shape)}); }
  void AddLinear(const std::string& name, int64_t out, int64_t in) {
    Add(absl::StrCat(name, ".weight"), {out, in});
    Add(absl::StrCat(name, ".bias"), {out});
  }
  void AddNorm(const std::string& name, int64_t width) {
    Add(absl::StrCat(name, ".weight"), {width});
    Add(absl::StrCat(name, ".bias"), {width});
  }
  std::vector<TensorShape> Take() { return std::move(tensors_); }

 private:
  std::vector<TensorShape> tensors_;
};

void AddLayer(const TextClassifierConfig& config, const std::string& prefix, TensorList& tensors) {
  const int64_t width = config.model_width;
  tensors.AddNorm(prefix + "norm1", width);
  for (const char* const projection : {"W_q", "W_k", "W_v", "W_o"})
    tensors.AddLinear(absl::StrCat(prefix, "mha.", projection), width, width);
  tensors.AddNorm(prefix + "mha.dual_ln_s", width);
  tensors.AddNorm(prefix + "mha.dual_ln_l", width);
  if (config.projection_rank > 0)
    tensors.AddLinear(prefix + "mha.dconv_fc", config.heads * config.projection_rank, width);
  if (config.value_convolution > 0)
    tensors.Add(prefix + "mha.conv.weight", {config.heads, 1, config.value_convolution, 1});
  tensors.AddNorm(prefix + "norm2", width);
  tensors.AddLinear(prefix + "mlpblock.0", config.feed_forward_width, width);
  tensors.AddLinear(prefix + "mlpblock.3", width, config.feed_forward_width);
}

}  // namespace

std::string TextLayerPrefix(const TextClassifierConfig& config, int64_t layer) {
  return config.tied_layers ? "model.transformer." : absl::StrFormat("model.transformer_%d.", layer);
}

std::vector<TensorShape> TextClassifierTensors(const TextClassifierConfig& config) {
  const int64_t width = config.model_width;
  TensorList tensors;
  tensors.Add("model.embeddings.word_embeddings.weight", {config.vocabulary_size, width});
  tensors.Add("model.embeddings.position_embeddings.weight", {config.max_sequence_length, width});
  if (config.HasClsParameter()) tensors.Add("model.cls_embed", {1, 1, width});
  for (int64_t layer = 0; layer < (config.tied_layers ? 1 : config.layers); ++layer)
    AddLayer(config, TextLayerPrefix(config, layer), tensors);
  tensors.AddNorm("model.norm", width);
  // Two documents are compared by their rows, the product and the difference.
  tensors.AddLinear("seq_classifer.mlpblock.0", config.feed_forward_width, config.documents == 2 ? 4 * width : width);
  tensors.AddLinear("seq_classifer.mlpblock.2", config.classes, config.feed_forward_width);
  return tensors.Take();
}

}  // namespace longshort
