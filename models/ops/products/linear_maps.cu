// A thread block has a square tile of the output, and each of its four warps a quarter of it. 64 bytes of each of the
// tile's rows and of the weight's are in shared memory at a time, and the next ones are on their way.
//   shared  [kStages][rows, then the weight's: 2 * side][kPieces] of 16 bytes
#include "models/device/device.h"
#include "models/ops/products/linear_maps.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/folded_rows.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kStages = 4;
constexpr int kPieces = 4;  // of a row in a stage, one for each of the lanes that share the row
constexpr int kRowBytes = kPieces * 16;

template <typename Element>
constexpr ElementType kTypeOf = sizeof(Element) == 4 ? ElementType::kFloat : ElementType::kBFloat16;

// Up to four of a row's elements, from number `index` on: `left` exist. In one piece if the rows have whole pieces.
template <typename Element>
LS_DEVICE SomeFloats<4> LoadFour(const void* rows, int64_t index, int left, bool whole_pieces) {
  SomeFloats<4> four = {};
  if (rows == nullptr) return four;
  if (whole_pieces) return LoadRow<4>(kTypeOf<Element>, rows, index);
  LS_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < left) four.value[i] = RowElement(kTypeOf<Element>, rows, index + i);
  }
  return four;
}

// Finishes and writes up to four outputs of a row, given the sums of their products.
template <typename Element>
LS_DEVICE void Finish(const LinearMap& map, int64_t row, int output, SomeFloats<4> sums, bool whole_pieces) {
  const int left = map.outputs - output;
  if (left <= 0) return;
  const SomeFloats<4> bias = LoadFour<Element>(map.bias, output, left, whole_pieces);
  const SomeFloats<4> addend = LoadFour<Element>(map.addend.data, row * map.addend.stride + output, left, whole_pieces);
  LS_UNROLL
  for (int i = 0; i < 4; ++i) {
    sums.value[i] = Add(Activated(map.activation, Add(sums.value[i], bias.value[i])), addend.value[i]);
  }
  const int64_t to = row * map.output.stride + output;
  if (whole_pieces) {
    StoreRow<4>(kTypeOf<Element>, map.output.data, to, sums);
    return;
  }
  LS_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < left) SetRowElement(kTypeOf<Element>, map.output.data, to + i, sums.value[i]);
  }
}

template <typename Element, int side>
LS_KERNEL(kThreads)
void MapRows(LS_ARGUMENTS LinearMap map) {
  constexpr int kSideOfWarp = side / 2, kRowTiles = kSideOfWarp / 16, kOutputTiles = kSideOfWarp / 8;
  constexpr int kStageBytes = 2 * side * kRowBytes, kElements = kRowBytes / sizeof(Element);
  const int tiles = (map.outputs + side - 1) / side, steps = (map.width + kElements - 1) / kElements;
  const int64_t first_row = int64_t{Block().x / tiles} * side;
  const int first_output = Block().x % tiles * side;
  const bool whole_pieces =
      HasWholePieces<Element>(map.rows, map.width) && HasWholePieces<Element>(map.weight, map.width) &&
      HasWholePieces<Element>({const_cast<void*>(map.bias), 0}, map.outputs) &&
      HasWholePieces<Element>(map.addend, map.outputs) && HasWholePieces<Element>(map.output, map.outputs);

  const auto load_rows = [&](const Rows& rows, int64_t first, int64_t count, int step, unsigned char* to) {
    LS_UNROLL
    for (int i = Thread(); i < side * kPieces; i += kThreads) {
      const int64_t row = first + i / kPieces;
      const bool real = row < count;
      CopyPiece(to + i * 16, HeadOfRow<Element>(rows, real ? row : 0, 0), step * kPieces + i % kPieces, map.width,
                whole_pieces, real);
    }
  };
  const auto load = [&](int step) {
    unsigned char* const to = SharedMemory() + step % kStages * kStageBytes;
    if (step < steps) {
      load_rows(map.rows, first_row, map.count, step, to);
      load_rows(map.weight, first_output, map.outputs, step, to + side * kRowBytes);
    }
    CommitCopies();
  };

  // A warp's outputs are numbered so that lane (g, q) has four adjacent ones of a row, 16 * pair + 4 * q on: the first
  // two in products[..][2 * pair], the others in products[..][2 * pair + 1].
  const int group = Lane() / 4, quad = Lane() % 4;
  const int row_of_lane = Warp() / 2 * kSideOfWarp + group, output_of_warp = Warp() % 2 * kSideOfWarp;
  const int output_of_group = output_of_warp + group / 2 * 4 + group % 2;
  float products[kRowTiles][kOutputTiles][4] = {};
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < steps; ++step) {
    WaitForCopies<kStages - 2>();
    SyncBlock();
    load(step + kStages - 1);
    const unsigned char* const rows = SharedMemory() + step % kStages * kStageBytes + quad * 16;
    const unsigned char* const weight = rows + side * kRowBytes;
    Factor<Element> factors[kRowTiles][2][4];
    LS_UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      LS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Words<4> row = Load<4>(rows + (row_of_lane + 16 * m + 8 * half) * kRowBytes);
        LS_UNROLL
        for (int i = 0; i < 4; ++i) factors[m][i / 2][i % 2 * 2 + half] = FactorOf<Element>(row.word[i]);
      }
    }
    LS_UNROLL
    for (int n = 0; n < kOutputTiles; ++n) {
      const Words<4> column = Load<4>(weight + (output_of_group + n / 2 * 16 + n % 2 * 2) * kRowBytes);
      LS_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Factor<Element> first = FactorOf<Element>(column.word[2 * half]),
                              second = FactorOf<Element>(column.word[2 * half + 1]);
        LS_UNROLL
        for (int m = 0; m < kRowTiles; ++m) MultiplyFactors(products[m][n], factors[m][half], first, second);
      }
    }
  }

  LS_UNROLL
  for (int i = 0; i < 2 * kRowTiles; ++i) {
    const int m = i / 2, half = i % 2;
    const int64_t row = first_row + row_of_lane + 16 * m + 8 * half;
    if (row >= map.count) continue;
    LS_UNROLL
    for (int pair = 0; pair < kOutputTiles / 2; ++pair) {
      const int output = first_output + output_of_warp + 16 * pair + 4 * quad;
      const float(&before)[4] = products[m][2 * pair], (&behind)[4] = products[m][2 * pair + 1];
      const SomeFloats<4> sums = {{before[2 * half], before[2 * half + 1], behind[2 * half], behind[2 * half + 1]}};
      Finish<Element>(map, row, output, sums, whole_pieces);
    }
  }
}

template <typename Element, int side>
KernelCall CallOf(const LinearMap& arguments) {
  LaunchShape shape;
  shape.grid.x = BlocksFor(arguments.count, side) * BlocksFor(arguments.outputs, side);
  shape.threads = kThreads;
  shape.shared_bytes = kStages * 2 * side * kRowBytes;
  return MakeCall<MapRows<Element, side>>("MapRows", shape, arguments);
}
template <typename Element>
KernelCall CallOfType(const LinearMap& arguments, int side) {
  return side == 64 ? CallOf<Element, 64>(arguments) : CallOf<Element, 128>(arguments);
}

}  // namespace

KernelCall LinearMapCall(const LinearMap& arguments, int side) {
  return arguments.element == ElementType::kFloat ? CallOfType<float>(arguments, side)
                                                  : CallOfType<BFloat16>(arguments, side);
}

KernelCall LinearMapCall(const LinearMap& arguments) {
  // If there are fewer tiles of 128, smaller ones use more multiprocessors. The bits are the same.
  constexpr int64_t kEnough = 128;
  const int64_t tiles = int64_t{BlocksFor(arguments.count, 128)} * BlocksFor(arguments.outputs, 128);
  return LinearMapCall(arguments, tiles < kEnough ? 64 : 128);
}

}  // namespace longshort::models::cuda
