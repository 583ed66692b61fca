// Batches of images as layers read them: one tensor of a device. Thread: the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/attention/gpu_item_attention.h"
#include "models/classifier.h"
#include "models/gpu/graph_buckets.h"

namespace longshort::models {

// How large a batch is, or a bucket.
struct ImageBatchShape {
  ImageShape image;
  int64_t images = 0;

  bool HasRoomFor(const ImageBatchShape& other) const { return other.image == image && other.images <= images; }
  size_t bytes() const { return static_cast<size_t>(images * image.values()) * sizeof(float); }
};

// Of images of this size, the largest first.
std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image);
// What the graphs of all buckets refer to, beside weights and LibTorch's tensors.
int64_t ImageGraphBytes(const GraphLimits& limits, int64_t image_values, int64_t classes);

// Writes the images' values one after the other, on several threads where that is worth it.
void StageImages(absl::Span<const ImageItem* const> images, char* to);

// Those in memory of `device`.
at::Tensor ImagesIn(char* memory, const ImageBatchShape& shape, at::Device device);

}  // namespace longshort::models
