// Batches of documents and of images on a device: the index arrays that kernels read, and images as one tensor. Thread:
// the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/types/span.h"
#include "models/classifier.h"
#include "models/device/model_gpu.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/document_attention/document_tiles.h"
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
  // The size of all arrays.
  size_t bytes() const;
};

// The buckets for items of `item_documents` documents each, largest first.
std::vector<DocumentShape> DocumentBuckets(const GraphLimits& limits, int64_t item_documents);
// GPU memory that the graphs of all buckets use, in addition to weights and LibTorch's tensors.
int64_t DocumentGraphBytes(const GraphLimits& limits, int64_t classes);

struct DocumentsOnDevice {
  const int64_t* ids = nullptr;
  const int64_t* positions = nullptr;
  const int64_t* cls_ids = nullptr;
  const cuda::DocumentTile* tiles = nullptr;
  const cuda::WindowRows* windows = nullptr;
  cuda::ItemRanges ranges;
  DocumentShape shape;
};

// The addresses of the arrays in memory to which DocumentArrays::Write wrote with this `bucket`.
DocumentsOnDevice DocumentsIn(char* memory, const DocumentShape& bucket);
// The tensors of these documents for layers.
DocumentTokens TokensOf(const DocumentsOnDevice& documents, at::Device device);

// The arrays of one batch, on the host.
class DocumentArrays final {
 public:
  // `packed` must outlive it.
  explicit DocumentArrays(const PackedDocuments& packed);

  const DocumentShape& shape() const { return shape_; }
  // Writes bucket.bytes(). Padding consists of rows of token 0 outside all tiles, tiles without rows, and documents
  // without rows. REQUIRES: bucket.HasRoomFor(shape()).
  void Write(const DocumentShape& bucket, char* to) const;

 private:
  const PackedDocuments& packed_;
  cuda::DocumentTiles tiles_;
  std::vector<cuda::ItemRows> ranges_;
  DocumentShape shape_;
};

// --- images ---

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
