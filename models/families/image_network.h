// The common part of the image classifiers: a batch of images becomes one tensor, from which a network computes
// features, and its head logits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "models/families/served_classifier.h"
#include "models/load_options.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// The network of an architecture, prepared for serving.
class ImageNetwork : public ServedNetwork {
 public:
  // `made_for` is the shape of the images that the model's preprocessing makes.
  explicit ImageNetwork(const ImageShape& made_for) : made_for_(made_for) {}

  // Checks that the network accepts images of this size, in pixels. Errors: INVALID_ARGUMENT naming the size and the
  // violated rule.
  virtual absl::Status CheckSize(int64_t height, int64_t width) const = 0;
  // images [batch, channels, height, width] of a size that CheckSize accepts -> [batch, width], of the weights' type.
  virtual at::Tensor Features(const at::Tensor& images, ItemAttention& attention) const = 0;
  virtual const Linear& head() const = 0;
  // The multiply-adds of one image with the head, as in ClassifierCounts.
  virtual int64_t MultiplyAdds(int64_t height, int64_t width) const = 0;

  absl::Status Check(Items items, ClassifierOutput output) const final;
  std::vector<int64_t> Work(Items items) const final;
  MicroBatchWork micro_batch_work() const final;
  bool IsFasterInPanels() const final { return true; }
  Output Run(Items items, ClassifierOutput output) const final;
  int64_t BeginOn(GpuItemAttention& gpu, Items items, ClassifierOutput output) const final;
  absl::Status PrepareOn(GpuItemAttention& gpu) const final;

 private:
  at::Tensor Rows(const at::Tensor& images, ItemAttention& attention, ClassifierOutput output) const;
  int64_t BatchMultiplyAdds(Items items, ClassifierOutput output) const;

  ImageShape made_for_;
};

// The shape of the images that the preprocessing of `config` makes. Config has channels, classes and preprocessing.
template <typename Config>
ImageShape ShapeOf(const Config& config) {
  return {.channels = config.channels,
          .height = config.preprocessing.crop_height,
          .width = config.preprocessing.crop_width};
}

// The properties of an image classifier, for LoadServedClassifier. `width` is the width of its features.
template <typename Config>
ClassifierInfo ImageClassifierInfo(std::string architecture, int64_t width, const Config& config,
                                   const std::vector<TensorShape>& tensors, const LoadOptions& options) {
  ClassifierInfo info;
  info.architecture = std::move(architecture);
  info.input = ClassifierInput::kImage;
  info.classes = config.classes;
  info.width = width;
  info.parameters = CountParameters(tensors);
  info.channels = config.channels;
  if (options.gpus != nullptr) {
    info.gpu_workspace_bytes = options.gpus->ImageGraphBytes(ShapeOf(config), config.classes);
  }
  return info;
}

}  // namespace longshort::models
