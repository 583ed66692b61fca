// Attention of a batch of items (documents, images) by the kernels of a device: what a classifier's layers ask of it
// between LibTorch's products. Layers without one take the reference ops, which are differentiable.
//
// Rows of items, d = heads * head_width channels each, are
//   documents  [rows, d]: those of the batch that runs
//   images     [images, tokens, d]: all tokens of each image, or some that follow each other
// of float32 or bfloat16. They may lie apart, but as far from each other in all tensors of a call; channels are beside
// each other.
//
// What is thrown is LibTorch's (c10::OutOfMemoryError if the device has no memory, too), or std::runtime_error if the
// device fails. Thread: the worker's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/attention/long_short_attention_2d.h"
#include "models/attention/packed_documents.h"
#include "models/classifier.h"
#include "models/gpu_backends.h"
#include "models/layers/linear.h"

namespace longshort {

struct RowKeyValues {
  at::Tensor keys;
  at::Tensor values;
};

// Attention from all rows to what each sees of its item, and to vectors that all rows of the item see.
struct RowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // rows of items, not scaled
  RowKeyValues tokens;  // rows of items
  RowKeyValues shared;  // [items, m, d], m >= 0; contiguous if m > 1
  at::Tensor attended;  // rows of items: to be written
};

// The dynamic projection of whole items, to R vectors each.
struct RowsToCompress {
  int64_t heads = 0;
  at::Tensor logits;               // rows of items, heads * R channels
  RowKeyValues tokens;             // rows of items
  LayerNorm key_norm, value_norm;  // of what comes out, with the same epsilon
};

// Attention from one row of each item to itself and to the item's rows, which are keys and values at once.
struct OwnRowsToAttend {
  int64_t heads = 0;
  at::Tensor queries;   // [items, d], not scaled
  RowKeyValues own;     // [items, d]
  at::Tensor rows;      // rows of items
  at::Tensor attended;  // [items, d]: to be written
};

struct ImageShape {
  int64_t channels = 0;
  int64_t height = 0;  // pixels
  int64_t width = 0;   // pixels

  int64_t values() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// Values of documents to be convolved along positions, and added to rows.
struct RowsToConvolve {
  int64_t heads = 0;
  at::Tensor taps;    // [heads, kernel], contiguous, of the rows' type; kernel odd
  at::Tensor values;  // rows of documents
  at::Tensor sums;    // rows of documents: to be added to
};

class ItemAttention {
 public:
  virtual ~ItemAttention() = default;

  // What layers read of a batch of documents, on the device.
  struct Documents {
    at::Tensor ids;        // [rows] int64
    at::Tensor positions;  // [rows] int64
    int64_t count = 0;
  };
  // What a network does to them: -> logits [items, classes] float32. It asks this object for attention.
  using DocumentLayers = std::function<at::Tensor(const Documents& documents)>;
  // A whole batch: brings documents to the device, and logits to the host, in one piece each. What is returned, [items
  // * classes], stays until the next batch. Pads the batch where a graph has room for more rows or documents.
  virtual absl::Span<const float> RunDocuments(const PackedDocuments& packed, const DocumentLayers& layers) = 0;
  // Makes graphs of batches of documents, as PrepareImages does of images, once. `item_documents`: of each item.
  virtual absl::Status PrepareDocuments(int64_t item_documents, const DocumentLayers& layers) = 0;

  // What a network does to a batch of images: [images, channels, height, width] float32 on the device -> [images,
  // classes] float32. It asks this object for attention.
  using ImageLayers = std::function<at::Tensor(const at::Tensor& images)>;
  // A whole batch: brings images to the device, and logits to the host, in one piece each. What is returned stays until
  // the next batch. Pads the batch where a graph has room for more images. REQUIRES: all are of one size.
  virtual absl::Span<const float> RunImages(absl::Span<const ImageItem* const> images, int64_t channels,
                                            const ImageLayers& layers) = 0;
  // Makes graphs of batches of images of this size, once. RunImages runs them from then on instead of calling its
  // `layers`: they must be the same. What `layers` refers to must outlive this object.
  // Errors: those of GpuDevice; what `layers` throws: RESOURCE_EXHAUSTED if there is no memory, INTERNAL else.
  virtual absl::Status PrepareImages(const ImageShape& shape, const ImageLayers& layers) = 0;

  // As LongShortAttention1d, for each document. REQUIRES: every row sees something.
  virtual void AttendInDocuments(const RowsToAttend& rows) = 0;
  // As LongShortAttention2d, for each image. `bias_table` [positions, heads], float32: of window scores, as
  // WindowBiasIndex (models/classifiers) finds them; undefined: none.
  virtual void AttendInGrids(const RowsToAttend& rows, const TokenGrid& grid, const WindowGeometry& window,
                             const at::Tensor& bias_table) = 0;
  // Vectors of each item, [items, others + R, d]: the first `others` are for the caller to write, then its landmarks.
  virtual RowKeyValues Landmarks(const RowsToCompress& rows, int64_t others) = 0;
  virtual void AttendToRows(const OwnRowsToAttend& rows) = 0;
  // As ConvolveValues (long_short_attention_1d.h), for each document.
  virtual void ConvolveValues(const RowsToConvolve& rows) = 0;
  // Sums of each item's rows, divided by `length`: [items, d].
  virtual at::Tensor MeanOfRows(const at::Tensor& rows, int64_t length) = 0;
};

// For a worker on `device`; null on the CPU. `gpus`: null in a build for the CPU only. `head_width`: of the widest
// heads. Errors: UNIMPLEMENTED for a GPU where there are none; those of GpuBackends.
absl::StatusOr<std::unique_ptr<ItemAttention>> MakeItemAttention(const GpuBackends* gpus, const WorkerDevice& device,
                                                                 int64_t head_width);

}  // namespace longshort
