#include <algorithm>
#include <memory>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/families/family_loader.h"
#include "models/families/image_network.h"
#include "models/families/served_classifier.h"
#include "models/ops/layers/linear.h"
#include "tests/models/families/toy/toy_config.h"

namespace longshort::models {
namespace {

struct ToyNetwork {
  Linear hidden, head;
  LayerNorm norm;

  void MoveBy(TensorMove& move) { move(hidden, norm, head); }
};

ToyNetwork MakeToyNetwork(const ToyConfig& config, const TensorSource& tensor) {
  const NamedTensors tensors(tensor);
  return {.hidden = tensors.MakeLinear("hidden"),
          .head = tensors.MakeLinear("head"),
          .norm = tensors.MakeNorm("norm", config.layer_norm_epsilon)};
}

class ServedToy final : public ImageNetwork {
 public:
  ServedToy(const ToyConfig& config, ToyNetwork network)
      : ImageNetwork(ShapeOf(config)), config_(config), network_(std::move(network)) {}

  absl::Status CheckSize(int64_t height, int64_t width) const override {
    if (std::min(height, width) >= config_.cells) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("an image of %d x %d pixels (height x width) has fewer than %d cells along a side", height,
                        width, config_.cells));
  }
  at::Tensor Features(const at::Tensor& images, ItemAttention&) const override {
    const at::Tensor cells = at::adaptive_avg_pool2d(images, {config_.cells, config_.cells}).flatten(1);
    return network_.norm(network_.hidden(cells));
  }
  const Linear& head() const override { return network_.head; }
  int64_t MultiplyAdds(int64_t, int64_t) const override {
    return network_.hidden.multiply_adds() + network_.head.multiply_adds();
  }
  std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const override {
    auto copy = std::make_shared<ServedToy>(*this);
    copy->network_.MoveBy(move);
    return copy;
  }

 private:
  ToyConfig config_;
  ToyNetwork network_;
};

absl::StatusOr<ClassifierWeights> LoadToy(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const ToyConfig config, ParseToyConfig(directory.config_text, directory.config_path()));
  const std::vector<TensorShape> tensors = ToyTensors(config);
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, tensors));
  return LoadServedClassifier(
      ImageClassifierInfo("toy", config.width, config, tensors, options), /*head_width=*/0, directory, options,
      [&](const TensorSource& read) { return std::make_shared<ServedToy>(config, MakeToyNetwork(config, read)); });
}

}  // namespace

namespace toy {

FamilyLoader Loader() { return {.architecture = "toy", .load = LoadImages<LoadToy>, .sizes = ImageSizes}; }

}  // namespace toy
}  // namespace longshort::models
