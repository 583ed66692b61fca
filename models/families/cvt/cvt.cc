#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "models/families/classifiers.h"
#include "models/families/costs.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/cvt/cvt_network.h"
#include "models/families/image_network.h"

namespace longshort::models {
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
  return LoadServedClassifier(
      ImageClassifierInfo("cvt", config, tensors, options), WidestHead(config), directory, options,
      [&](const TensorSource& read) { return std::make_shared<ServedCvt>(config, MakeCvtNetwork(config, read)); });
}

}  // namespace longshort::models
