// Batches of documents and of images on a device: the arrays that kernels read, and images as one tensor. Thread: the
// worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/device/model_gpu.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/document_attention/document_places_kernels.h"
#include "models/ops/document_attention/packed_documents.h"
#include "models/ops/item_attention/gpu_item_attention.h"
#include "models/ops/item_attention/item_attention.h"
#include "models/ops/rows/rows.h"

namespace longshort::models {

// --- documents ---

// The size of a batch, or of a bucket.
struct DocumentShape {
  int64_t rows = 0;
  int64_t documents = 0;
  int64_t tiles = 0;
  int64_t max_rows = 0;  // of the longest document

  bool HasRoomFor(const DocumentShape& other) const {
    return other.rows <= rows && other.documents <= documents && other.tiles <= tiles && other.max_rows <= max_rows;
  }
  // The size of an upload with positions.
  size_t bytes() const;
};

// The buckets for items of `item_documents` documents each, largest first.
std::vector<DocumentShape> DocumentBuckets(const GraphLimits& limits, int64_t item_documents);
// GPU memory that the graphs of all buckets use, in addition to weights and LibTorch's tensors.
int64_t DocumentGraphBytes(const GraphLimits& limits, int64_t classes);

// The arrays of an upload.
struct DocumentsOnDevice {
  const int32_t* ids = nullptr;
  const int32_t* positions = nullptr;  // only of documents that have some
  const int32_t* cls_ids = nullptr;
  const cuda::DocumentStart* starts = nullptr;
  cuda::ItemRanges ranges;
  DocumentShape shape;
};

// The addresses of the arrays in memory to which DocumentArrays::Write wrote with this `bucket`.
DocumentsOnDevice DocumentsIn(char* memory, const DocumentShape& bucket);

// What the device computes of them.
struct DocumentPlaces {
  at::Tensor positions;  // [rows] int64
  at::Tensor windows;    // [rows, 2] int64: cuda::WindowRows
  at::Tensor tiles;      // [tiles, 5] int64: cuda::DocumentTile

  DocumentPlaces() = default;
  DocumentPlaces(const DocumentShape& shape, at::Device device);

  // The kernel that writes them.
  KernelCall Call(const DocumentsOnDevice& documents, const WindowRule& windows) const;
};

// The tensors of these documents for layers.
DocumentTokens TokensOf(const DocumentsOnDevice& documents, const DocumentPlaces& places, at::Device device);

// The upload of one batch, on the host.
class DocumentArrays final {
 public:
  // `packed` must outlive it.
  explicit DocumentArrays(const PackedIds& packed);

  const DocumentShape& shape() const { return shape_; }
  // At most bucket.bytes(): positions come last, and are left out where no document has some.
  size_t UploadBytes(const DocumentShape& bucket) const;
  // Writes UploadBytes(bucket). Padding consists of rows of token 0 behind the documents, and of documents without
  // rows. REQUIRES: bucket.HasRoomFor(shape()).
  void Write(const DocumentShape& bucket, char* to) const;

 private:
  const PackedIds& packed_;
  DocumentShape shape_;
};

// --- images ---

// The size of a batch, or of a bucket.
struct ImageBatchShape {
  ImageShape image;
  int64_t images = 0;

  bool HasRoomFor(const ImageBatchShape& other) const { return other.image == image && other.images <= images; }
  // The size of an upload of images that are no bytes.
  size_t bytes() const;
};

// The buckets for images of this size, largest first.
std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image);
// GPU memory that the graphs of all buckets use, in addition to weights and LibTorch's tensors.
int64_t ImageGraphBytes(const GraphLimits& limits, const ImageShape& image, int64_t classes);

// The upload of one batch, on the host: the images' bytes with the values of bytes, or, if not all images are bytes of
// the same values, the values of all.
class ImagesToUpload final {
 public:
  // `images` must outlive it.
  explicit ImagesToUpload(absl::Span<const ImageItem* const> images, int64_t channels);

  const ImageBatchShape& shape() const { return shape_; }
  // At most shape().bytes().
  size_t UploadBytes() const;
  // Writes UploadBytes(), with several threads if that is faster.
  void Write(char* to) const;

 private:
  const absl::Span<const ImageItem* const> images_;
  ImageBatchShape shape_;
  bool are_bytes_;
};

// The kernel that writes the values, [images, channels, height, width] float32, of an upload to `memory`.
KernelCall ReadImages(const char* memory, const ImageBatchShape& shape, const at::Tensor& values);

}  // namespace longshort::models
