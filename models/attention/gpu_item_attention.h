// ItemAttention on a GPU, by the kernels of models/gpu; and whole batches there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/attention/item_attention.h"
#include "models/attention/packed_documents.h"
#include "models/classifier.h"
#include "models/gpu/model_gpu.h"

namespace longshort::models {

struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;  // pixels
  int64_t width = 0;   // pixels

  int64_t values() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// Without gradients. Thread: the worker's.
class GpuItemAttention : public ItemAttention {
 public:
  // What a network does to a batch of documents: -> logits [items, classes] float32. It asks this object for attention.
  using DocumentLayers = std::function<at::Tensor(const DocumentTokens& documents)>;
  // A whole batch: brings documents to the device, and logits to the host, in one piece each. The returned logits,
  // [items * classes], stay valid until the next batch. A batch for which there is a graph runs as that, padded.
  virtual absl::Span<const float> RunDocuments(const PackedDocuments& packed, const DocumentLayers& layers) = 0;
  // Makes graphs of batches of documents, as PrepareImages does of images, once. `item_documents`: of each item.
  virtual absl::Status PrepareDocuments(int64_t item_documents, const DocumentLayers& layers) = 0;

  // What a network does to a batch of images: [images, channels, height, width] float32 on the device -> [images,
  // classes] float32. It asks this object for attention.
  using ImageLayers = std::function<at::Tensor(const at::Tensor& images)>;
  // As RunDocuments. REQUIRES: all images are of one size.
  virtual absl::Span<const float> RunImages(absl::Span<const ImageItem* const> images, int64_t channels,
                                            const ImageLayers& layers) = 0;
  // Makes graphs of batches of images of this size, once. RunImages runs them from then on instead of calling its
  // `layers`: they must be the same. What `layers` refers to must outlive this object.
  // Errors: those of GpuDevice; what `layers` throws: RESOURCE_EXHAUSTED if there is no memory, INTERNAL else.
  virtual absl::Status PrepareImages(const ImageShape& shape, const ImageLayers& layers) = 0;
};

// Opens a stream. `head_width`: of the model's widest heads.
// Errors: those of GpuDevice; UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeGpuItemAttention(const ModelGpu& gpu, int64_t head_width);

}  // namespace longshort::models
