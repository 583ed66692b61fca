// Batches of documents as kernels read them: index arrays of the host, and where they lie on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "models/attention/item_attention.h"
#include "models/attention/packed_documents.h"
#include "models/gpu/document_attention.h"
#include "models/gpu/document_tiles.h"
#include "models/gpu/graph_buckets.h"
#include "models/gpu/rows.h"

namespace longshort::models {

// How large a batch is, or a bucket.
struct DocumentShape {
  int64_t rows = 0;
  int64_t documents = 0;
  int64_t tiles = 0;
  int64_t max_rows = 0;  // of a document

  bool HasRoomFor(const DocumentShape& other) const {
    return other.rows <= rows && other.documents <= documents && other.tiles <= tiles && other.max_rows <= max_rows;
  }
  // Of all arrays.
  size_t bytes() const;
};

// Of items of so many documents each, the largest first.
std::vector<DocumentShape> DocumentBuckets(const GraphLimits& limits, int64_t item_documents);
// What the graphs of all buckets refer to, beside weights and LibTorch's tensors.
int64_t DocumentGraphBytes(const GraphLimits& limits, int64_t classes);

struct DocumentsOnDevice {
  const int64_t* ids = nullptr;
  const int64_t* positions = nullptr;
  const cuda::DocumentTile* tiles = nullptr;
  const cuda::WindowRows* windows = nullptr;
  cuda::ItemRanges ranges;
  DocumentShape shape;
};

// Those in memory that has room for so much, where DocumentArrays have been written.
DocumentsOnDevice DocumentsIn(char* memory, const DocumentShape& room);
// What layers read of them.
DocumentTokens TokensOf(const DocumentsOnDevice& documents, at::Device device);

// Of one batch, on the host.
class DocumentArrays final {
 public:
  // `packed` must outlive it.
  explicit DocumentArrays(const PackedDocuments& packed);

  const DocumentShape& shape() const { return shape_; }
  // Writes room.bytes(). What is padding are rows of token 0 that are of no tile, tiles of no rows, and documents of no
  // rows. REQUIRES: room.HasRoomFor(shape()).
  void Write(const DocumentShape& room, char* to) const;

 private:
  const PackedDocuments& packed_;
  cuda::DocumentTiles tiles_;
  std::vector<cuda::ItemRows> ranges_;
  DocumentShape shape_;
};

}  // namespace longshort::models
