// ItemAttention on a GPU, with the kernels for GPUs. Also runs whole batches, if possible as graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/device/model_gpu.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;  // pixels
  int64_t width = 0;   // pixels

  int64_t values() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// Not differentiable. Thread: the worker's.
class GpuItemAttention : public ItemAttention {
 public:
  static constexpr int64_t kBatchesAtOnce = 2;

  // A network on a batch of documents: returns rows [items, n] float32. It calls this object for attention.
  using DocumentLayers = std::function<at::Tensor(const DocumentTokens& documents)>;
  // Queues a whole batch: copies the documents to the device and the rows to the host, with one copy each. If `layers`
  // are the `prepared` ones and a graph fits the batch, it is a run of the graph with padding. The host packs a batch
  // while the device runs the one before. REQUIRES: fewer than kBatchesAtOnce batches have begun and are not finished.
  virtual void BeginDocuments(const PackedIds& packed, const DocumentLayers& layers, bool prepared) = 0;
  // Waits for the first batch that has begun. Returns its rows, [items * n], valid until as many batches have begun
  // again. The batch has ended after an exception of either part.
  virtual absl::Span<const float> FinishBatch() = 0;
  absl::Span<const float> RunDocuments(const PackedIds& packed, const DocumentLayers& layers, bool prepared) {
    BeginDocuments(packed, layers, prepared);
    return FinishBatch();
  }
  // Captures graphs for batches of documents with these windows, as PrepareImages does for images. Call once.
  // `item_documents`: documents per item.
  virtual absl::Status PrepareDocuments(int64_t item_documents, const WindowRule& windows,
                                        const DocumentLayers& layers) = 0;

  // A network on a batch of images: [images, channels, height, width] float32 on the device -> [images, n] float32. It
  // calls this object for attention.
  using ImageLayers = std::function<at::Tensor(const at::Tensor& images)>;
  // As BeginDocuments. REQUIRES: all images have the same size.
  virtual void BeginImages(absl::Span<const ImageItem* const> images, int64_t channels, const ImageLayers& layers,
                           bool prepared) = 0;
  absl::Span<const float> RunImages(absl::Span<const ImageItem* const> images, int64_t channels,
                                    const ImageLayers& layers, bool prepared) {
    BeginImages(images, channels, layers, prepared);
    return FinishBatch();
  }
  // Captures graphs for batches of images of this size. Call once. Objects that `layers` refers to must outlive this
  // object.
  // Errors: those of GpuDevice; if `layers` throws: RESOURCE_EXHAUSTED if there is no memory, otherwise INTERNAL.
  virtual absl::Status PrepareImages(const ImageShape& shape, const ImageLayers& layers) = 0;
};

// Opens a stream. `head_width`: of the model's widest heads.
// Errors: those of GpuDevice; UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeGpuItemAttention(const ModelGpu& gpu, int64_t head_width);

}  // namespace longshort::models
