// Attention of a tile of rows by a thread block: up to 64 rows of one sequence and segment, and one head.
//
// A block has four warps of 16 rows each. Keys and values of 64 rows of the grid are loaded to shared memory while the
// previous 64 are processed. Position terms are read directly from their table, which stays in the L2 cache because all
// blocks read it. A block of scores stays in registers, so nothing of the size [rows, keys] is in memory:
//   scores [16 rows][64 keys] a warp, and mixed values [16 rows][width]
//   shared: keys and values [stages][64][width], queries [2: for content, for distances][64][width], swizzled;
//           position terms [4 warps][16][kRelativeStride] float32
// A row's position term for distance n belongs to key `newest - n`, a different column for each row. A warp multiplies
// its rows by the distances of a band of columns, counted from the newest row, and each lane stores the products at its
// rows' columns. If all rows have the same newest key, as with chunks of 16 rows and more, columns are keys, and no
// shift is needed.
#pragma once

#include "models/ops/causal_attention/attention_tile.h"
#include "models/ops/rows/folded_rows.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
// In floats. Puts the rows of a fragment's 8-byte loads into different banks.
constexpr int kRelativeStride = kPageRows + 8;
constexpr int kRelativeBytes = kTileRows * kRelativeStride * 4;

template <typename Element, int width, int stages>
struct SharedLayout {
  using Shape = Tile<Element, width>;
  static constexpr int kStages = stages;
  static constexpr int kKeys = 0;
  static constexpr int kValues = kKeys + kStages * Shape::kBlockBytes;
  static constexpr int kQueries = kValues + kStages * Shape::kBlockBytes;
  static constexpr int kRelative = kQueries + 2 * Shape::kBlockBytes;
  static constexpr int kBytes = kRelative + kRelativeBytes;
};

// The number of stages on chips with much shared memory: one for blocks of keys of 32 KiB, which then have 150 KiB in
// all. Two stages have at most 114 KiB. Chips of the capabilities 8.6, 8.9 and 12.0 allow 99 KiB, which is enough for
// one stage of blocks of 16 KiB: 82 KiB. There, float32 heads wider than 64 do not run.
template <typename Element, int width>
constexpr int kMostStages = Tile<Element, width>::kBlockBytes <= 16 * 1024 ? 2 : 1;

template <typename Element, int width, int stages>
class PromptTile {
 public:
  using Shape = Tile<Element, width>;
  using Layout = SharedLayout<Element, width, stages>;

  LS_DEVICE PromptTile(const CausalAttention& attention, int64_t first_row, int rows, int head)
      : attention_(attention), head_(head), rows_(rows), first_row_(first_row) {
    const int64_t position = attention.positions[first_row];
    seen_ = KeysSeenFrom(attention, attention.segment_starts[first_row], position, position + rows - 1);
    ids_ = PageIdsOf(attention, seen_, attention.row_slices[first_row]);
    group_ = Lane() / 4;
    quad_ = Lane() % 4;
    for (int half = 0; half < 2; ++half) {
      newest_[half] = NewestKeysOf(attention, seen_, position + ExistingRow(TileRow(half)));
    }
  }

  LS_DEVICE void Run() {
    const int blocks = BlockCount(seen_);
    Part staged = Part::kMemory;
    StageQueries(staged);
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
      const KeyBlock block = BlockNumber(seen_, index);
      if (block.part == Part::kWindow && staged != Part::kWindow) {
        staged = Part::kWindow;
        StageQueries(staged);
      }
      SyncBlock();
      AddBlock(block, index % Layout::kStages);
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
  // A row beyond the last is treated as the last row.
  LS_DEVICE int ExistingRow(int tile_row) const { return tile_row < rows_ ? tile_row : rows_ - 1; }

  LS_DEVICE unsigned char* Queries(bool distances) const {
    return SharedMemory() + Layout::kQueries + (distances ? Shape::kBlockBytes : 0);
  }
  LS_DEVICE float* Relative() const {
    return reinterpret_cast<float*>(SharedMemory() + Layout::kRelative) + Warp() * kWarpRows * kRelativeStride;
  }

  // Each warp loads its own rows, converted to elements and with their biases.
  LS_DEVICE void StageQueries(Part part) {
    SyncWarp();
    const float* const biases[2] = {ContentBias(attention_, part), DistanceBias(attention_, part)};
    constexpr int kPairs = width / 2;
    for (int i = Lane(); i < kWarpRows * kPairs; i += kWarpThreads) {
      const int row = Warp() * kWarpRows + i / kPairs, channel = i % kPairs * 2;
      const int64_t from = first_row_ + ExistingRow(row);
      LS_UNROLL
      for (int kind = 0; kind < 2; ++kind) {
        const float first = QueryElement(attention_, from, head_, channel, biases[kind]);
        const float second = QueryElement(attention_, from, head_, channel + 1, biases[kind]);
        unsigned char* const place = Queries(kind == 1) +
                                     PieceOffset<Shape::kPiecesOfRow>(row, channel / Shape::kElementsOfPiece) +
                                     channel % Shape::kElementsOfPiece * static_cast<int>(sizeof(Element));
        if constexpr (sizeof(Element) == 2) {
          Store<1>(place, {{PackBFloat16(first, second)}});
        } else {
          Store<2>(place, {{BitsOf(first), BitsOf(second)}});
        }
      }
    }
    SyncWarp();
  }

  LS_DEVICE void LoadBlock(int index) {
    const KeyBlock block = BlockNumber(seen_, index);
    const unsigned char* const keys = KeysOfBlock<Element, width>(attention_, ids_, block, head_);
    unsigned char* const to = SharedMemory() + index % Layout::kStages * Shape::kBlockBytes;
    for (int i = Thread(); i < kPageRows * Shape::kPiecesOfRow; i += kThreads) {
      const int key = i / Shape::kPiecesOfRow, place = PieceOffset<Shape::kPiecesOfRow>(key, i % Shape::kPiecesOfRow);
      // Values of unseen rows must not be NaN: they are multiplied by 0.
      CopyAsync(to + Layout::kKeys + place, keys + i * 16, block.IsSeen(key));
      CopyAsync(to + Layout::kValues + place, keys + Shape::kBlockBytes + i * 16, block.IsSeen(key));
    }
  }

  LS_DEVICE void AddBlock(const KeyBlock& block, int stage) {
    float scores[kPageRows / 8][4] = {};
    AddProducts<Element, width>(scores, Queries(false), TileRow(0),
                                SharedMemory() + Layout::kKeys + stage * Shape::kBlockBytes);
    AddDistances(scores, block);
    ScaleAndMask(scores, block);
    FoldBlock<Element, width>(scores, SharedMemory() + Layout::kValues + stage * Shape::kBlockBytes, folded_, mixed_);
  }

  // Loads the lane's pieces of the 8 distances newest - 8 * tile - 0..7.
  struct DistancePieces {
    Words<4> pieces[Shape::kPiecesOfLane];
  };
  LS_DEVICE DistancePieces LoadDistances(const Distances& distances, int newest, int tile) const {
    const unsigned char* const from = DistanceRow<Element, width>(distances, newest - 8 * tile - group_) + quad_ * 16;
    DistancePieces loaded;
    LS_UNROLL
    for (int c = 0; c < Shape::kPiecesOfLane; ++c) loaded.pieces[c] = LoadConstant<4>(from + c * 64);
    return loaded;
  }
  // The lane's pieces of the warp's rows that distances multiply. They stay in registers if there are few.
  struct QueryPieces {
    static constexpr bool kStay = Shape::kPiecesOfLane <= 2;
    Words<4> rows[kStay ? Shape::kPiecesOfLane : 1][2];
  };
  LS_DEVICE Words<4> QueryPiece(int c, int half) const {
    return Load<4>(Queries(true) + PieceOffset<Shape::kPiecesOfRow>(TileRow(half), 4 * c + quad_));
  }
  LS_DEVICE QueryPieces LoadQueryPieces() const {
    QueryPieces loaded = {};
    if constexpr (QueryPieces::kStay) {
      LS_UNROLL
      for (int i = 0; i < 2 * Shape::kPiecesOfLane; ++i) loaded.rows[i / 2][i % 2] = QueryPiece(i / 2, i % 2);
    }
    return loaded;
  }
  // Multiplies the warp's rows by these distances.
  LS_DEVICE void DistanceProducts(float (&products)[4], const QueryPieces& queries,
                                  const DistancePieces& loaded) const {
    LS_UNROLL
    for (int c = 0; c < Shape::kPiecesOfLane; ++c) {
      if constexpr (QueryPieces::kStay) {
        MultiplyPiece<Element>(products, queries.rows[c][0], queries.rows[c][1], loaded.pieces[c]);
      } else {
        MultiplyPiece<Element>(products, QueryPiece(c, 0), QueryPiece(c, 1), loaded.pieces[c]);
      }
    }
  }

  LS_DEVICE void AddDistances(float (&scores)[kPageRows / 8][4], const KeyBlock& block) const {
    const Distances distances = DistancesOf<Element, width>(attention_, block.part, head_);
    // The key of the block at distance 0: for the lane's two rows, and for the warp's first and last row.
    const int newest[2] = {newest_[0].Of(block.part) - block.first, newest_[1].Of(block.part) - block.first};
    const int first = Shuffle(newest[0], 0), last = Shuffle(newest[1], kWarpThreads - 1);
    const QueryPieces queries = LoadQueryPieces();
    if (first == last) {
      LS_UNROLL
      for (int n = 0; n < kPageRows / 8; ++n) {
        float products[4] = {};
        DistanceProducts(products, queries, LoadDistances(distances, last, n));
        LS_UNROLL
        for (int i = 0; i < 4; ++i) scores[n][i] = Add(scores[n][i], products[i]);
      }
      return;
    }
    // Column e of the band is distance last - e, which belongs to a row's key e - (last - its newest).
    const int tiles = (kPageRows - 1 + last - first) / 8 + 1;
    float* const relative = Relative();
    DistancePieces next = LoadDistances(distances, last, 0);
    for (int tile = 0; tile < tiles; ++tile) {
      const DistancePieces here = next;
      next = LoadDistances(distances, last, tile + 1);  // loads while this one is processed
      float products[4] = {};
      DistanceProducts(products, queries, here);
      LS_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int half = i / 2, key = 8 * tile + 2 * quad_ + i % 2 - (last - newest[half]);
        if (key >= 0 && key < kPageRows) relative[(group_ + 8 * half) * kRelativeStride + key] = products[i];
      }
    }
    SyncWarp();
    LS_UNROLL
    for (int n = 0; n < kPageRows / 8; ++n) {
      LS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Words<2> terms = Load<2>(relative + (group_ + 8 * half) * kRelativeStride + 8 * n + 2 * quad_);
        LS_UNROLL
        for (int i = 0; i < 2; ++i) {
          scores[n][2 * half + i] = Add(scores[n][2 * half + i], FloatOf(terms.word[i]));
        }
      }
    }
  }

  LS_DEVICE void ScaleAndMask(float (&scores)[kPageRows / 8][4], const KeyBlock& block) const {
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      RowKeys keys = KeysOfRow(block, newest_[half], attention_.window_length);
      if (TileRow(half) >= rows_) keys.end = 0;
      LS_UNROLL
      for (int n = 0; n < kPageRows / 8; ++n) {
        LS_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& score = scores[n][2 * half + i];
          score = keys.Has(8 * n + 2 * quad_ + i) ? Multiply(score, kLog2E) : kMinusInfinity;
        }
      }
    }
  }

  LS_DEVICE void WriteOutput() const {
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int tile_row = TileRow(half);
      if (tile_row >= rows_) continue;
      const float scale = Reciprocal(folded_.sums[half]);
      const int64_t to = (first_row_ + tile_row) * attention_.output_stride + head_ * attention_.head_width;
      LS_UNROLL
      for (int n = 0; n < width / 8; ++n) {
        LS_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int channel = 8 * n + 2 * quad_ + i;
          if (channel >= attention_.head_width) continue;
          SetRowElement(attention_.row, attention_.output, to + channel,
                        Multiply(mixed_[n / 2][n % 2][2 * half + i], scale));
        }
      }
    }
  }

  const CausalAttention& attention_;
  const int head_, rows_;
  const int64_t first_row_;
  SeenKeys seen_;
  PageIds ids_;
  int group_, quad_;
  NewestKeys newest_[2];  // of rows g and g + 8
  // The running results of rows g and g + 8.
  float mixed_[width / 16][2][4] = {};
  FoldedRows folded_;
};

}  // namespace

// The call of the kernel with one stage, with the grid of `shape`. REQUIRES: a block of keys has 16 KiB.
KernelCall OneStageCall(const PromptAttention& arguments, LaunchShape shape);

}  // namespace longshort::models::cuda
