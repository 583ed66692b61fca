// One thread block per tile and head (row_tile.h).
#include "models/device/device.h"
#include "models/ops/document_attention/document_attention_kernels.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_tile.h"

namespace longshort::models::cuda {
namespace {

struct DocumentPlaces {
  static constexpr bool kHasBias = false;

  int64_t first_row, first_key;
  int item, rows, keys;
  const WindowRows* windows;  // of the tile's rows

  LS_DEVICE int64_t QueryRow(int row) const { return first_row + row; }
  LS_DEVICE int64_t KeyRow(int key) const { return first_key + key; }
  LS_DEVICE WindowKeys KeysOf(int row) const {
    const WindowRows window = windows[row];
    return {static_cast<int>(window.begin - first_key), static_cast<int>(window.end - first_key)};
  }
};

template <typename Element, int width>
LS_KERNEL(kRowTileThreads, 2)
void AttendInDocuments(LS_ARGUMENTS DocumentAttention arguments) {
  const DocumentTile& tile = arguments.tiles[Block().x];
  if (tile.rows == 0) return;
  DocumentPlaces places;
  places.item = static_cast<int>(tile.document);
  places.first_row = tile.first_row;
  places.first_key = tile.first_key;
  places.rows = static_cast<int>(tile.rows);
  places.keys = static_cast<int>(tile.keys);
  places.windows = arguments.windows + tile.first_row;
  RowTile<Element, width, DocumentPlaces>(arguments.attention, places, Block().y).Run();
}

template <typename Element, int width>
KernelCall CallOfWidth(const DocumentAttention& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.tile_count);
  shape.grid.y = static_cast<unsigned>(arguments.attention.heads);
  shape.threads = kRowTileThreads;
  shape.shared_bytes = RowTileLayout<Element, width>::kBytes;
  return MakeCall<AttendInDocuments<Element, width>>("AttendInDocuments", shape, arguments);
}

}  // namespace

KernelCall DocumentAttentionCall(const DocumentAttention& arguments) {
  return ForTypeAndWidth(arguments.attention.element, arguments.attention.head_width, [&](auto element, auto width) {
    return CallOfWidth<decltype(element), decltype(width)::value>(arguments);
  });
}

}  // namespace longshort::models::cuda
