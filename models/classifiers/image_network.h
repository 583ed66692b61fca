// What the image classifiers have in common: images become one tensor, of which a network makes logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/attention/item_attention.h"
#include "models/classifiers/served_classifier.h"

namespace longshort {

// The network of an architecture, ready to be served.
class ImageNetwork : public ServedNetwork {
 public:
  // `made_for`: what the model's preprocessing makes.
  explicit ImageNetwork(const ImageShape& made_for) : made_for_(made_for) {}

  // Whether images of this size, in pixels, can be run. Errors: INVALID_ARGUMENT with the size and the rule it breaks.
  virtual absl::Status CheckSize(int64_t height, int64_t width) const = 0;
  // images [batch, channels, height, width] of a size that can be run -> [batch, classes].
  virtual at::Tensor Logits(const at::Tensor& images, ItemAttention& attention) const = 0;
  // Of one image, as ClassifierCounts counts them.
  virtual int64_t MultiplyAdds(int64_t height, int64_t width) const = 0;

  absl::Status Check(Items items) const final;
  std::vector<int64_t> Work(Items items) const final;
  MicroBatchWork micro_batch_work() const final;
  Output Run(Items items) const final;
  ClassifierResult RunOn(GpuItemAttention& gpu, Items items) const final;
  absl::Status PrepareOn(GpuItemAttention& gpu) const final;

 private:
  ImageShape made_for_;
};

// What an architecture's config.json says about itself.
struct ImageNetworkFacts {
  std::string architecture;
  ImageShape image_shape;  // that its preprocessing makes
  int64_t classes = 0;
  int64_t parameters = 0;
  int64_t head_width = 0;  // of the widest heads
};

// As LoadServedClassifier.
absl::StatusOr<ClassifierWeights> LoadImageClassifier(
    const ImageNetworkFacts& facts, const ModelDirectory& directory, const LoadOptions& options,
    const std::function<std::shared_ptr<const ServedNetwork>(const TensorSource& read)>& make);

}  // namespace longshort
