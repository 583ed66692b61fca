// Batches of images as one tensor on a device. Thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/device/model_gpu.h"
#include "models/ops/item_attention/gpu_item_attention.h"

namespace longshort::models {

// The size of a batch, or of a bucket.
struct ImageBatchShape {
  ImageShape image;
  int64_t images = 0;

  bool HasRoomFor(const ImageBatchShape& other) const { return other.image == image && other.images <= images; }
  size_t bytes() const { return static_cast<size_t>(images * image.values()) * sizeof(float); }
};

// The buckets for images of this size, largest first.
std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image);
// GPU memory that the graphs of all buckets use, in addition to weights and LibTorch's tensors.
int64_t ImageGraphBytes(const GraphLimits& limits, int64_t image_values, int64_t classes);

// Writes the images' values one after another, with several threads if that is faster.
void StageImages(absl::Span<const ImageItem* const> images, char* to);

// The batch in memory of `device` as a tensor.
at::Tensor ImagesIn(char* memory, const ImageBatchShape& shape, at::Device device);

}  // namespace longshort::models
