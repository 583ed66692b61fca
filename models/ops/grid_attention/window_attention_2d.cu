// One thread block for up to 64 queries of a window, an image and a head (row_tile.h).
#include "models/device/device.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_tile.h"

namespace longshort::models::cuda {
namespace {

// A rectangle of the grid, row-major.
struct Rectangle {
  int top, left, height, width;

  LS_DEVICE int count() const { return height * width; }
  LS_DEVICE int Y(int place) const { return top + place / width; }
  LS_DEVICE int X(int place) const { return left + place % width; }
};
LS_DEVICE int Smaller(int a, int b) { return a < b ? a : b; }
// The part of a square at (top, left) that is on the grid.
LS_DEVICE Rectangle OnGrid(const WindowAttention2d& arguments, int top, int left, int side) {
  Rectangle part;
  part.top = top < 0 ? 0 : top;
  part.left = left < 0 ? 0 : left;
  part.height = Smaller(top + side, arguments.height) - part.top;
  part.width = Smaller(left + side, arguments.width) - part.left;
  return part;
}

template <bool has_bias>
struct GridPlaces {
  static constexpr bool kHasBias = has_bias;

  int64_t first_row;  // of the image
  int item, rows, keys;
  int first_query;  // in `queries`
  int grid_width;
  Rectangle queries, seen;
  const float* bias;  // the head's
  int origin, row_step, column_step;

  LS_DEVICE int64_t RowOf(const Rectangle& part, int place) const {
    return first_row + part.Y(place) * grid_width + part.X(place);
  }
  LS_DEVICE int64_t QueryRow(int row) const { return RowOf(queries, first_query + row); }
  LS_DEVICE int64_t KeyRow(int key) const { return RowOf(seen, key); }
  LS_DEVICE WindowKeys KeysOf(int) const { return {0, keys}; }

  LS_DEVICE int Offset(const Rectangle& part, int place) const {
    return part.Y(place) * row_step + part.X(place) * column_step;
  }
  LS_DEVICE int QueryOffset(int row) const { return origin + Offset(queries, first_query + row); }
  LS_DEVICE int KeyOffset(int key) const { return Offset(seen, key); }
};

constexpr int Pieces(int length, int piece) { return (length + piece - 1) / piece; }

// Blocks along x: the tiles of each window are adjacent. Without windows, the grid is one window.
LS_DEVICE Rectangle WindowOf(const WindowAttention2d& arguments, int index) {
  Rectangle grid;
  grid.top = grid.left = 0;
  grid.height = arguments.height;
  grid.width = arguments.width;
  const int side = arguments.side;
  if (side == 0) return grid;
  const int across = (arguments.width + side - 1) / side;
  return OnGrid(arguments, index / across * side, index % across * side, side);
}
int TilesOfWindow(const WindowAttention2d& arguments) {
  const int queries = arguments.side == 0 ? arguments.height * arguments.width : arguments.side * arguments.side;
  return Pieces(queries, kTileRows);
}
int Windows(const WindowAttention2d& arguments) {
  if (arguments.side == 0) return 1;
  return Pieces(arguments.height, arguments.side) * Pieces(arguments.width, arguments.side);
}

struct LaunchedWindows {
  WindowAttention2d arguments;
  int tiles_of_window;
};

template <typename Element, int width, bool has_bias>
LS_KERNEL(kRowTileThreads, 2)
void AttendInWindows(LS_ARGUMENTS LaunchedWindows launched) {
  const WindowAttention2d& arguments = launched.arguments;
  const int image = Block().z, head = Block().y, window = Block().x / launched.tiles_of_window;
  GridPlaces<has_bias> places;
  places.queries = WindowOf(arguments, window);
  places.first_query = (Block().x - window * launched.tiles_of_window) * kTileRows;
  places.rows = Smaller(places.queries.count() - places.first_query, kTileRows);
  if (places.rows <= 0) return;  // the grid's edge cuts the window
  places.item = image;
  places.first_row = image * arguments.image_rows;
  places.grid_width = arguments.width;
  places.keys = 0;
  if (arguments.side > 0) {
    const int margin = arguments.side / 2 > 1 ? arguments.side / 2 : 1;
    places.seen =
        OnGrid(arguments, places.queries.top - margin, places.queries.left - margin, arguments.side + 2 * margin);
    places.keys = places.seen.count();
  }
  if constexpr (has_bias) {
    places.bias = arguments.bias.table + head * arguments.bias.head_step;
    places.origin = arguments.bias.origin;
    places.row_step = arguments.bias.row_step;
    places.column_step = arguments.bias.column_step;
  }
  RowTile<Element, width, GridPlaces<has_bias>>(arguments.attention, places, head).Run();
}

template <typename Element, int width, bool has_bias>
KernelCall CallOfBias(const WindowAttention2d& arguments) {
  LaunchedWindows launched;
  launched.arguments = arguments;
  launched.tiles_of_window = TilesOfWindow(arguments);
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(Windows(arguments) * launched.tiles_of_window);
  shape.grid.y = static_cast<unsigned>(arguments.attention.heads);
  shape.grid.z = static_cast<unsigned>(arguments.images);
  shape.threads = kRowTileThreads;
  shape.shared_bytes = RowTileLayout<Element, width>::kBytes;
  return MakeCall<AttendInWindows<Element, width, has_bias>>("AttendInWindows", shape, launched);
}
template <typename Element, int width>
KernelCall CallOfWidth(const WindowAttention2d& arguments) {
  return arguments.bias.table != nullptr && arguments.side > 0 ? CallOfBias<Element, width, true>(arguments)
                                                               : CallOfBias<Element, width, false>(arguments);
}

}  // namespace

KernelCall WindowAttention2dCall(const WindowAttention2d& arguments) {
  return ForTypeAndWidth(arguments.attention.element, arguments.attention.head_width, [&](auto element, auto width) {
    return CallOfWidth<decltype(element), decltype(width)::value>(arguments);
  });
}

}  // namespace longshort::models::cuda
