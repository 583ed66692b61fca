// Batches of images of one size as graphs, one for each of some numbers of images. Thread: the worker's.
#pragma once

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/attention/batch_graph.h"
#include "models/attention/item_attention.h"
#include "models/classifier.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/gpu/gpu_upload.h"
#include "models/gpu/model_gpu.h"

namespace longshort {

// Writes the images' values one after the other, on several threads where that is worth it.
void StageImages(absl::Span<const ImageItem* const> images, float* to);

// What has been uploaded last, as a tensor on `device`.
at::Tensor ImagesIn(const GpuUpload& upload, int64_t count, const ImageShape& shape, at::Device device);

class ImageGraphs final {
 public:
  // What all of them refer to.
  static int64_t Bytes(const GraphLimits& most, int64_t image_values, int64_t classes) {
    return most.images * (image_values + classes) * static_cast<int64_t>(sizeof(float));
  }

  // Graphs are of `most_images` at the most. The device must outlive it.
  ImageGraphs(GpuDevice& device, at::Device tensors, int64_t most_images)
      : device_(device), tensors_(tensors), most_images_(most_images), upload_(device) {}

  // As ItemAttention::PrepareImages.
  absl::Status Capture(const ImageShape& shape, const ItemAttention::ImageLayers& layers);

  // The smallest that has room for so many images; null: there is none.
  BatchGraph* Find(const ImageShape& shape, size_t images);
  // Brings the logits of the images to `logits`, which is pinned, [images, classes]. Errors: those of GpuDevice.
  absl::Status Run(BatchGraph& graph, absl::Span<const ImageItem* const> images, float* logits);

 private:
  // Makes the memory of all graphs, with so many images of zeros in it.
  absl::Status UploadZeros(int64_t images);

  GpuDevice& device_;
  const at::Device tensors_;
  const int64_t most_images_;
  ImageShape shape_;
  // Of all graphs, which run one after the other.
  GpuUpload upload_;
  GpuMemory logits_;
  std::vector<BatchGraph> graphs_;  // the largest first
};

}  // namespace longshort
