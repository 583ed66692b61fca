#include "models/ops/item_attention/batches_on_device.h"

#include <algorithm>
#include <iterator>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "models/ops/pixels/pixels_kernels.h"

namespace longshort::models {
namespace {

// The offset of each array in bytes; each is aligned.
struct Offsets {
  explicit Offsets(const DocumentShape& bucket)
      : starts(bucket.documents * sizeof(cuda::ItemRows)),
        cls_ids(starts + bucket.documents * sizeof(cuda::DocumentStart)),
        ids(cls_ids + bucket.documents * sizeof(int32_t)),
        positions(ids + bucket.rows * sizeof(int32_t)),
        end(positions + bucket.rows * sizeof(int32_t)) {}

  size_t ranges = 0, starts, cls_ids, ids, positions, end;
};

int64_t TilesOf(int64_t rows) { return (rows + cuda::kTileRows - 1) / cuda::kTileRows; }

// The shape for any documents with `rows` rows in total. The last tile of each may be partial.
DocumentShape ShapeOf(int64_t rows, int64_t documents) {
  return {.rows = rows, .documents = documents, .tiles = rows / cuda::kTileRows + documents, .max_rows = rows};
}

}  // namespace

size_t DocumentShape::bytes() const { return Offsets(*this).end; }

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
  const Offsets offsets(bucket);
  return {.ids = reinterpret_cast<const int32_t*>(memory + offsets.ids),
          .positions = reinterpret_cast<const int32_t*>(memory + offsets.positions),
          .cls_ids = reinterpret_cast<const int32_t*>(memory + offsets.cls_ids),
          .starts = reinterpret_cast<const cuda::DocumentStart*>(memory + offsets.starts),
          .ranges = {.each = reinterpret_cast<const cuda::ItemRows*>(memory + offsets.ranges)},
          .shape = bucket};
}

DocumentPlaces::DocumentPlaces(const DocumentShape& shape, at::Device device) {
  const auto make = [device](int64_t count, int64_t element_bytes) {
    return at::empty({count, element_bytes / static_cast<int64_t>(sizeof(int64_t))},
                     at::TensorOptions(at::kLong).device(device));
  };
  positions = make(shape.rows, sizeof(int64_t)).view({shape.rows});
  windows = make(shape.rows, sizeof(cuda::WindowRows));
  tiles = make(shape.tiles, sizeof(cuda::DocumentTile));
}

KernelCall DocumentPlaces::Call(const DocumentsOnDevice& documents, const WindowRule& rule) const {
  const bool sees_rows = rule.size > 0 || !rule.see_nothing;
  return cuda::PlaceDocumentsCall({.documents = documents.ranges.each,
                                   .starts = documents.starts,
                                   .document_count = static_cast<int>(documents.shape.documents),
                                   .own_positions = documents.positions,
                                   .segment = sees_rows ? static_cast<int>(rule.segment()) : 0,
                                   .margin = static_cast<int>(rule.margin()),
                                   .rows = documents.shape.rows,
                                   .positions = positions.mutable_data_ptr<int64_t>(),
                                   .windows = reinterpret_cast<cuda::WindowRows*>(windows.mutable_data_ptr<int64_t>()),
                                   .tiles = reinterpret_cast<cuda::DocumentTile*>(tiles.mutable_data_ptr<int64_t>()),
                                   .tile_count = static_cast<int>(documents.shape.tiles)});
}

DocumentTokens TokensOf(const DocumentsOnDevice& documents, const DocumentPlaces& places, at::Device device) {
  const auto tensor = [&](const auto* numbers, int64_t count, at::ScalarType type, int64_t stride = 1) {
    return TensorIn(const_cast<void*>(static_cast<const void*>(numbers)), count, at::TensorOptions(type).device(device),
                    stride);
  };
  constexpr int64_t kStride = sizeof(cuda::ItemRows) / sizeof(int64_t);
  const DocumentShape& shape = documents.shape;
  return {.ids = tensor(documents.ids, shape.rows, at::kInt),
          .positions = places.positions,
          .lengths = tensor(&documents.ranges.each->rows, shape.documents, at::kLong, kStride),
          .cls_ids = tensor(documents.cls_ids, shape.documents, at::kInt),
          .documents = shape.documents};
}

DocumentArrays::DocumentArrays(const PackedIds& packed) : packed_(packed) {
  for (const int64_t rows : packed.lengths) {
    shape_.tiles += TilesOf(rows);
    shape_.max_rows = std::max(shape_.max_rows, rows);
  }
  shape_.rows = packed.rows();
  shape_.documents = std::ssize(packed.lengths);
}

size_t DocumentArrays::UploadBytes(const DocumentShape& bucket) const {
  const Offsets offsets(bucket);
  return packed_.positions.empty() ? offsets.positions : offsets.end;
}

void DocumentArrays::Write(const DocumentShape& bucket, char* to) const {
  const Offsets offsets(bucket);
  auto* range = reinterpret_cast<cuda::ItemRows*>(to + offsets.ranges);
  auto* start = reinterpret_cast<cuda::DocumentStart*>(to + offsets.starts);
  int64_t row = 0, tile = 0;
  for (int64_t document = 0; document < bucket.documents; ++document) {
    const int64_t rows = document < shape_.documents ? packed_.lengths[document] : 0;
    *range++ = {.first_row = row, .rows = rows};
    *start++ = {.tile = static_cast<int32_t>(tile), .has_positions = packed_.positions.empty() ? 0 : 1};
    row += rows;
    tile += TilesOf(rows);
  }
  const auto write = [to](const std::vector<int32_t>& numbers, size_t offset, int64_t count) {
    auto* const all = reinterpret_cast<int32_t*>(to + offset);
    std::fill(std::copy(numbers.begin(), numbers.end(), all), all + count, 0);
  };
  write(packed_.cls_ids, offsets.cls_ids, bucket.documents);
  write(packed_.ids, offsets.ids, bucket.rows);
  if (!packed_.positions.empty()) write(packed_.positions, offsets.positions, bucket.rows);
}

namespace {

// A thread copies this many bytes in the time that it takes to start.
constexpr int64_t kMinBytes = 1 << 18;

// The offset of each array of an upload in bytes. First comes one int32, whether pixels are bytes.
struct ImageOffsets {
  explicit ImageOffsets(const ImageShape& image) : pixels(table + image.channels * 256 * sizeof(float)) {}

  size_t table = 16, pixels;
};

}  // namespace

std::vector<ImageBatchShape> ImageBuckets(const GraphLimits& limits, const ImageShape& image) {
  std::vector<ImageBatchShape> buckets;
  for (const int64_t images : kImageBuckets) {
    if (images <= limits.images) buckets.push_back({.image = image, .images = images});
  }
  return buckets;
}

int64_t ImageGraphBytes(const GraphLimits& limits, const ImageShape& image, int64_t classes) {
  const ImageBatchShape largest = {.image = image, .images = limits.images};
  return static_cast<int64_t>(largest.bytes() + limits.images * classes * sizeof(float));
}

size_t ImageBatchShape::bytes() const {
  return ImageOffsets(image).pixels + static_cast<size_t>(images * image.values()) * sizeof(float);
}

ImagesToUpload::ImagesToUpload(absl::Span<const ImageItem* const> images, int64_t channels)
    : images_(images),
      shape_{.image = {.channels = channels, .height = images.front()->height, .width = images.front()->width},
             .images = std::ssize(images)},
      are_bytes_(std::all_of(images.begin(), images.end(), [&images](const ImageItem* image) {
        return !image->bytes.empty() && image->values_of_bytes == images.front()->values_of_bytes;
      })) {}

size_t ImagesToUpload::UploadBytes() const {
  if (!are_bytes_) return shape_.bytes();
  return ImageOffsets(shape_.image).pixels + static_cast<size_t>(shape_.images * shape_.image.values());
}

void ImagesToUpload::Write(char* to) const {
  const ImageOffsets offsets(shape_.image);
  *reinterpret_cast<int32_t*>(to) = are_bytes_ ? 1 : 0;
  if (are_bytes_) {
    const std::vector<float>& table = *images_.front()->values_of_bytes;
    std::copy(table.begin(), table.end(), reinterpret_cast<float*>(to + offsets.table));
  }
  const int64_t image_bytes = shape_.image.values() * (are_bytes_ ? 1 : static_cast<int64_t>(sizeof(float)));
  at::parallel_for(0, shape_.images, std::max<int64_t>(1, kMinBytes / image_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* const pixels = to + offsets.pixels + i * image_bytes;
      if (are_bytes_) {
        std::copy(images_[i]->bytes.begin(), images_[i]->bytes.end(), reinterpret_cast<uint8_t*>(pixels));
      } else {
        images_[i]->WriteValues(reinterpret_cast<float*>(pixels));
      }
    }
  });
}

KernelCall ReadImages(const char* memory, const ImageBatchShape& shape, const at::Tensor& values) {
  const ImageOffsets offsets(shape.image);
  return cuda::NormalisePixelsCall({.are_bytes = reinterpret_cast<const int32_t*>(memory),
                                    .table = reinterpret_cast<const float*>(memory + offsets.table),
                                    .pixels = memory + offsets.pixels,
                                    .images = shape.images,
                                    .channels = static_cast<int>(shape.image.channels),
                                    .plane = static_cast<int>(shape.image.height * shape.image.width),
                                    .values = values.mutable_data_ptr<float>()});
}

}  // namespace longshort::models
