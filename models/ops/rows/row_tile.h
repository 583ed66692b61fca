// One tile of RowAttention: up to 64 rows and one head, the work of one thread block. For kernels only.
//
// A block has four warps of 16 rows each. Keys and values of 64 places are loaded to shared memory while the previous
// 64 are processed. A block of scores stays in registers, so nothing of the size [rows, keys] is in memory:
//   scores [16 rows][64 keys] a warp, and mixed values [16 rows][width]
//   shared: keys and values [stages][64][width], queries [64][width], swizzled; offsets of keys [stages][64]
#pragma once

#include <cstdint>

#include "models/device/device.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/folded_rows.h"
#include "models/ops/rows/rows.h"

namespace longshort::models::cuda {

constexpr int kRowTileThreads = 128;

// The keys of a row's window, numbered from the tile's first key. Every row also sees the shared vectors.
struct WindowKeys {
  int begin, end;
};
// The offset of a key that has no bias.
constexpr int kNoOffset = 0x7fffffff;

template <typename Element, int width>
struct RowTileLayout {
  using Shape = Tile<Element, width>;
  // Two if they fit the shared memory of every chip.
  static constexpr int kStages = Shape::kBlockBytes <= 16 * 1024 ? 2 : 1;
  static constexpr int kKeys = 0;
  static constexpr int kValues = kKeys + kStages * Shape::kBlockBytes;
  static constexpr int kQueries = kValues + kStages * Shape::kBlockBytes;
  static constexpr int kOffsets = kQueries + Shape::kBlockBytes;
  static constexpr int kBytes = kOffsets + kStages * kPageRows * 4;
};

// `Places` gives the tile's rows and keys:
//
//   int item, rows, keys;                 // item of the shared vectors; 1 .. kTileRows rows; keys of all windows, >= 0
//   int64_t QueryRow(int i), KeyRow(int key);
//   WindowKeys KeysOf(int i);
//   static constexpr bool kHasBias;       // if true, the bias of a row and a key of its window is
//   const float* bias;                    // bias[QueryOffset(i) - KeyOffset(key)]
//   int QueryOffset(int i), KeyOffset(int key);
template <typename Element, int width, typename Places>
class RowTile {
 public:
  using Shape = Tile<Element, width>;
  using Layout = RowTileLayout<Element, width>;

  LS_DEVICE RowTile(const RowAttention& attention, const Places& places, int head)
      : attention_(attention), places_(places), first_channel_(head * attention.head_width) {
    group_ = Lane() / 4;
    quad_ = Lane() % 4;
    all_keys_ = attention.shared + places.keys;
    whole_pieces_ = HasWholePieces<Element>(attention.queries, attention.head_width) &&
                    HasWholePieces<Element>(attention.keys, attention.head_width) &&
                    HasWholePieces<Element>(attention.values, attention.head_width) &&
                    HasWholePieces<Element>(attention.shared_keys, attention.head_width) &&
                    HasWholePieces<Element>(attention.shared_values, attention.head_width) &&
                    HasWholePieces<Element>(attention.output, attention.head_width);
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      // A row beyond the last sees the last row's keys, and is not written.
      const int row = TileRow(half) < places.rows ? TileRow(half) : places.rows - 1;
      seen_[half] = places.KeysOf(row);
      if constexpr (Places::kHasBias) row_offset_[half] = places.QueryOffset(row);
    }
  }

  LS_DEVICE void Run() {
    const int blocks = (all_keys_ + kPageRows - 1) / kPageRows;
    LoadQueries();
    LoadBlock(0);
    CommitCopies();
    for (int index = 0; index < blocks; ++index) {
      if constexpr (Layout::kStages == 2) {
        if (index + 1 < blocks) LoadBlock(index + 1);
        CommitCopies();
        WaitForCopies<1>();
      } else {
        WaitForCopies<0>();
      }
      SyncBlock();
      AddBlock(index);
      SyncBlock();  // before the next copies overwrite the stage
      if constexpr (Layout::kStages == 1) {
        if (index + 1 < blocks) LoadBlock(index + 1);
        CommitCopies();
      }
    }
    WriteOutput();
  }

 private:
  // The row in the tile of fragment row g (half 0) or g + 8 (half 1).
  LS_DEVICE int TileRow(int half) const { return Warp() * kWarpRows + group_ + 8 * half; }
  LS_DEVICE int* KeyOffsets(int stage) const {
    return reinterpret_cast<int*>(SharedMemory() + Layout::kOffsets) + stage * kPageRows;
  }

  LS_DEVICE void LoadQueries() const {
    for (int i = Thread(); i < kTileRows * Shape::kPiecesOfRow; i += kRowTileThreads) {
      const int row = i / Shape::kPiecesOfRow, piece = i % Shape::kPiecesOfRow;
      const bool real = row < places_.rows;
      const Element* const from =
          HeadOfRow<Element>(attention_.queries, real ? places_.QueryRow(row) : 0, first_channel_);
      CopyPiece(SharedMemory() + Layout::kQueries + PieceOffset<Shape::kPiecesOfRow>(row, piece), from, piece,
                attention_.head_width, whole_pieces_, real);
    }
  }

  LS_DEVICE void LoadBlock(int index) const {
    const int stage = index % Layout::kStages, shared = attention_.shared;
    unsigned char* const to = SharedMemory() + stage * Shape::kBlockBytes;
    for (int i = Thread(); i < kPageRows * Shape::kPiecesOfRow; i += kRowTileThreads) {
      const int place = i / Shape::kPiecesOfRow, piece = i % Shape::kPiecesOfRow;
      const int key = index * kPageRows + place;
      // Values beyond the last key must not be NaN: they are multiplied by 0.
      const bool real = key < all_keys_, is_shared = key < shared;
      const int64_t row = !real ? 0 : is_shared ? int64_t{places_.item} * shared + key : places_.KeyRow(key - shared);
      const Rows& keys = real && is_shared ? attention_.shared_keys : attention_.keys;
      const Rows& values = real && is_shared ? attention_.shared_values : attention_.values;
      const int offset = PieceOffset<Shape::kPiecesOfRow>(place, piece);
      CopyPiece(to + Layout::kKeys + offset, HeadOfRow<Element>(keys, row, first_channel_), piece,
                attention_.head_width, whole_pieces_, real);
      CopyPiece(to + Layout::kValues + offset, HeadOfRow<Element>(values, row, first_channel_), piece,
                attention_.head_width, whole_pieces_, real);
      if constexpr (Places::kHasBias) {
        if (piece == 0) {
          KeyOffsets(stage)[place] = real && !is_shared ? places_.KeyOffset(key - shared) : kNoOffset;
        }
      }
    }
  }

  LS_DEVICE void AddBlock(int index) {
    const int stage = index % Layout::kStages;
    float scores[kPageRows / 8][4] = {};
    AddProducts<Element, width>(scores, SharedMemory() + Layout::kQueries, TileRow(0),
                                SharedMemory() + Layout::kKeys + stage * Shape::kBlockBytes);
    ScaleAndMask(scores, index);
    FoldBlock<Element, width>(scores, SharedMemory() + Layout::kValues + stage * Shape::kBlockBytes, folded_, mixed_);
  }

  LS_DEVICE void ScaleAndMask(float (&scores)[kPageRows / 8][4], int index) const {
    const float scale = Multiply(attention_.scale, kLog2E);
    const int first = index * kPageRows;
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      // Places of this block.
      const int shared = attention_.shared - first;
      const int begin = seen_[half].begin + shared, end = seen_[half].end + shared;
      LS_UNROLL
      for (int n = 0; n < kPageRows / 8; ++n) {
        LS_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int place = 8 * n + 2 * quad_ + i;
          float& score = scores[n][2 * half + i];
          if (place < shared || (place >= begin && place < end)) {
            score = Multiply(score, scale);
            if constexpr (Places::kHasBias) {
              const int offset = KeyOffsets(index % Layout::kStages)[place];
              if (offset != kNoOffset) score = MultiplyAdd(places_.bias[row_offset_[half] - offset], kLog2E, score);
            }
          } else {
            score = kMinusInfinity;
          }
        }
      }
    }
  }

  LS_DEVICE void WriteOutput() const {
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int row = TileRow(half);
      if (row >= places_.rows) continue;
      const float scale = Reciprocal(folded_.sums[half]);
      Element* const to = static_cast<Element*>(attention_.output.data) +
                          places_.QueryRow(row) * attention_.output.stride + first_channel_;
      LS_UNROLL
      for (int n = 0; n < width / 8; ++n) {
        const int channel = 8 * n + 2 * quad_;
        const float first = Multiply(mixed_[n / 2][n % 2][2 * half], scale);
        const float second = Multiply(mixed_[n / 2][n % 2][2 * half + 1], scale);
        if (whole_pieces_) {
          if (channel >= attention_.head_width) continue;
          if constexpr (sizeof(Element) == 2) {
            Store<1>(to + channel, {{PackBFloat16(first, second)}});
          } else {
            Store<2>(to + channel, {{BitsOf(first), BitsOf(second)}});
          }
        } else {
          if (channel < attention_.head_width) Convert(first, to[channel]);
          if (channel + 1 < attention_.head_width) Convert(second, to[channel + 1]);
        }
      }
    }
  }

  const RowAttention& attention_;
  const Places& places_;
  const int first_channel_;
  int group_, quad_, all_keys_;
  bool whole_pieces_;
  // Of rows g and g + 8.
  WindowKeys seen_[2];
  int row_offset_[2] = {};
  float mixed_[width / 16][2][4] = {};
  FoldedRows folded_;
};

}  // namespace longshort::models::cuda
