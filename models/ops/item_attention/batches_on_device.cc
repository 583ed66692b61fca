#include "models/ops/item_attention/batches_on_device.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"

namespace longshort::models {
namespace {

// The offset of each array in bytes. All arrays consist of int64, so each offset is aligned.
struct Places {
  explicit Places(const DocumentShape& bucket)
      : positions(ids + bucket.rows * sizeof(int64_t)),
        tiles(positions + bucket.rows * sizeof(int64_t)),
        windows(tiles + bucket.tiles * sizeof(cuda::DocumentTile)),
        ranges(windows + bucket.rows * sizeof(cuda::WindowRows)),
        cls_ids(ranges + bucket.documents * sizeof(cuda::ItemRows)),
        end(cls_ids + bucket.documents * sizeof(int64_t)) {}

  size_t ids = 0, positions, tiles, windows, ranges, cls_ids, end;
};

// The shape for any documents with `rows` rows in total. The last tile of each may be partial.
DocumentShape ShapeOf(int64_t rows, int64_t documents) {
  return {.rows = rows, .documents = documents, .tiles = rows / cuda::kTileRows + documents, .max_rows = rows};
}

}  // namespace

size_t DocumentShape::bytes() const { return Places(*this).end; }

std::vector<DocumentShape> DocumentBuckets(const GraphLimits& limits, int64_t item_documents) {
  std::vector<DocumentShape> buckets;
  for (const int64_t rows : kDocumentRowBuckets) {
    for (const int64_t documents : kDocumentBuckets) {
      if (rows > limits.document_rows || documents > limits.documents || documents % item_documents != 0) continue;
      buckets.push_back(ShapeOf(rows, documents));
    }
  }
  return buckets;
}

int64_t DocumentGraphBytes(const GraphLimits& limits, int64_t classes) {
  return static_cast<int64_t>(ShapeOf(limits.document_rows, limits.documents).bytes() +
                              limits.documents * classes * sizeof(float));
}

DocumentsOnDevice DocumentsIn(char* memory, const DocumentShape& bucket) {
  const Places places(bucket);
  return {.ids = reinterpret_cast<const int64_t*>(memory + places.ids),
          .positions = reinterpret_cast<const int64_t*>(memory + places.positions),
          .cls_ids = reinterpret_cast<const int64_t*>(memory + places.cls_ids),
          .tiles = reinterpret_cast<const cuda::DocumentTile*>(memory + places.tiles),
          .windows = reinterpret_cast<const cuda::WindowRows*>(memory + places.windows),
          .ranges = {.each = reinterpret_cast<const cuda::ItemRows*>(memory + places.ranges)},
          .shape = bucket};
}

DocumentTokens TokensOf(const DocumentsOnDevice& documents, at::Device device) {
  const auto tensor = [&](const int64_t* numbers, int64_t count, int64_t stride = 1) {
    return TensorIn(const_cast<int64_t*>(numbers), count, at::TensorOptions(at::kLong).device(device), stride);
  };
  constexpr int64_t kStride = sizeof(cuda::ItemRows) / sizeof(int64_t);
  const DocumentShape& shape = documents.shape;
  return {.ids = tensor(documents.ids, shape.rows),
          .positions = tensor(documents.positions, shape.rows),
          .lengths = tensor(&documents.ranges.each->rows, shape.documents, kStride),
          .cls_ids = tensor(documents.cls_ids, shape.documents),
          .documents = shape.documents};
}

DocumentArrays::DocumentArrays(const PackedDocuments& packed) : packed_(packed) {
  for (const PackedDocument& document : packed.documents) {
    tiles_.Add(document.segments);
    ranges_.push_back({.first_row = document.first_row, .rows = document.rows});
    shape_.max_rows = std::max(shape_.max_rows, document.rows);
  }
  shape_.rows = packed.rows();
  shape_.documents = static_cast<int64_t>(ranges_.size());
  shape_.tiles = static_cast<int64_t>(tiles_.tiles.size());
}

void DocumentArrays::Write(const DocumentShape& bucket, char* to) const {
  const Places places(bucket);
  std::memset(to, 0, places.end);
  const auto write = [to](const auto& array, size_t place) {
    using Element = std::decay_t<decltype(array.front())>;
    std::copy(array.begin(), array.end(), reinterpret_cast<Element*>(to + place));
  };
  write(packed_.ids, places.ids);
  write(packed_.positions, places.positions);
  write(tiles_.tiles, places.tiles);
  write(tiles_.windows, places.windows);
  write(ranges_, places.ranges);
  write(packed_.cls_ids, places.cls_ids);
}

namespace {

// A thread copies this many numbers in the time that it takes to start.
constexpr int64_t kMinValues = 1 << 16;

}  // namespace

std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image) {
  std::vector<ImageBatchShape> buckets;
  for (const int64_t images : kImageBuckets) {
    if (images <= limits.images) buckets.push_back({.image = image, .images = images});
  }
  return buckets;
}

int64_t ImageGraphBytes(const GraphLimits& limits, int64_t image_values, int64_t classes) {
  return limits.images * (image_values + classes) * static_cast<int64_t>(sizeof(float));
}

void StageImages(absl::Span<const ImageItem* const> images, char* to) {
  const auto values = static_cast<int64_t>(images.front()->values.size());
  const int64_t grain = std::max<int64_t>(1, kMinValues / values);
  float* const floats = reinterpret_cast<float*>(to);
  at::parallel_for(0, static_cast<int64_t>(images.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy(images[i]->values.begin(), images[i]->values.end(), floats + i * values);
    }
  });
}

at::Tensor ImagesIn(char* memory, const ImageBatchShape& shape, at::Device device) {
  return TensorIn(memory, {shape.images, shape.image.channels, shape.image.height, shape.image.width},
                  at::TensorOptions(at::kFloat).device(device));
}

}  // namespace longshort::models
