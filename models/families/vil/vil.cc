#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/families/classifiers.h"
#include "models/families/costs.h"
#include "models/families/image_network.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_network.h"

namespace longshort::models {
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
  ClassifierInfo info = ImageClassifierInfo("vil", config, tensors, options);
  info.has_cls = !config.PoolsAllTokens();
  return LoadServedClassifier(std::move(info), WidestHead(config), directory, options, [&](const TensorSource& read) {
    return std::make_shared<ServedVil>(config, MakeVilNetwork(config, read));
  });
}

}  // namespace longshort::models
