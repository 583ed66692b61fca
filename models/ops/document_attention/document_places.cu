// Positions, windows and tiles of packed documents: one thread block per tile, one thread per row.
#include "models/device/device.h"
#include "models/ops/document_attention/document_places_kernels.h"
#include "models/ops/rows/kernel_choice.h"

namespace longshort::models::cuda {
namespace {

// Returns the last document whose first tile is at most `tile`: one with rows, if it is a document's tile.
LS_DEVICE int DocumentOf(const DocumentsToPlace& places, int tile) {
  int first = 0, end = places.document_count;
  while (end - first > 1) {
    const int middle = (first + end) / 2;
    (places.starts[middle].tile <= tile ? first : end) = middle;
  }
  return first;
}

// The rows of a document.
class Document final {
 public:
  LS_DEVICE Document(const DocumentsToPlace& places, int index)
      : places_(places), range_(places.documents[index]), has_positions_(places.starts[index].has_positions != 0) {}

  LS_DEVICE const ItemRows& range() const { return range_; }
  LS_DEVICE int64_t PositionOf(int64_t row) const {
    return has_positions_ ? places_.own_positions[range_.first_row + row] : row;
  }
  // Returns the rows of the batch that a row of the document sees.
  LS_DEVICE WindowRows WindowOf(int64_t row) const {
    if (places_.segment == 0) return {range_.first_row + row, range_.first_row + row};
    const int64_t begin = PositionOf(row) / places_.segment * places_.segment;
    return {range_.first_row + FirstFrom(begin - places_.margin),
            range_.first_row + FirstFrom(begin + places_.segment + places_.margin)};
  }

 private:
  // Returns the number of rows before `position`.
  LS_DEVICE int64_t FirstFrom(int64_t position) const {
    int64_t first = 0, end = range_.rows;
    if (!has_positions_) return position < first ? first : position < end ? position : end;
    while (first < end) {
      const int64_t middle = (first + end) / 2;
      if (PositionOf(middle) < position) {
        first = middle + 1;
      } else {
        end = middle;
      }
    }
    return first;
  }

  const DocumentsToPlace& places_;
  const ItemRows range_;
  const bool has_positions_;
};

LS_KERNEL(kTileRows) void PlaceDocuments(LS_ARGUMENTS DocumentsToPlace arguments) {
  const int tile = Block().x, index = DocumentOf(arguments, tile);
  const Document document(arguments, index);
  const ItemRows range = document.range();
  const int64_t before = int64_t{tile - arguments.starts[index].tile} * kTileRows, left = range.rows - before;
  if (left <= 0) {
    // This is a tile behind the last document's.
    const int64_t tiles = (range.rows + kTileRows - 1) / kTileRows * kTileRows;
    const int64_t row = range.first_row + range.rows + before - tiles + Thread();
    if (row < arguments.rows) arguments.positions[row] = 0;
    if (Thread() == 0) arguments.tiles[tile] = {};
    return;
  }
  const int64_t row = before + Thread();
  if (row < range.rows) {
    arguments.positions[range.first_row + row] = document.PositionOf(row);
    arguments.windows[range.first_row + row] = document.WindowOf(row);
  }
  if (Thread() > 0) return;
  // Windows begin and end in the order of their rows.
  const int64_t rows = left < kTileRows ? left : kTileRows, first_key = document.WindowOf(before).begin;
  const int64_t keys = arguments.segment == 0 ? 0 : document.WindowOf(before + rows - 1).end - first_key;
  arguments.tiles[tile] = {range.first_row + before, rows, first_key, keys, index};
}

}  // namespace

KernelCall PlaceDocumentsCall(const DocumentsToPlace& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.tile_count);
  shape.threads = kTileRows;
  return MakeCall<PlaceDocuments>("PlaceDocuments", shape, arguments);
}

}  // namespace longshort::models::cuda
