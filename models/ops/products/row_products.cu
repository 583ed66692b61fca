// A thread block has 16 outputs of up to 16 rows. The matrix is the 16-row operand of the tensor cores, so that up to 8
// rows cost what one does. Each of the 16 warps sums some channels: 32 at a time, 8 of each of four lanes, in the order
// in which attention reads rows (tile_products.h). The matrix comes from memory and all else from the L2 cache. So the
// matrix is loaded first, and while that takes its time, warp w normalises row w.
//   shared  gain and bias of the norm [2][width] float32, later the warps' sums [16][rows][kSumStride] float32;
//           behind them the normalised rows [rows][StagedBytes] bfloat16

#include "models/device/device.h"
#include "models/ops/products/row_products.h"
#include "models/ops/products/tile_products.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kWarps = 16, kThreads = kWarps * kWarpThreads;
constexpr int kOutputs = 16;   // of a block
constexpr int kColumns = 8;    // of an instruction: rows of x
constexpr int kChannels = 32;  // of a warp at a time
constexpr int kAhead = 4;      // times that many channels are loaded before they are used: 2,048 in a block
// Lanes that store a fragment meet no bank conflict.
constexpr int kSumStride = 20;

// From one normalised row to the next. An odd number of 64 bytes: eight lanes that read two rows meet no bank conflict.
constexpr int StagedBytes(int width) { return (width * 2 + 63) / 64 * 64 | 64; }

// What begins with gain and bias, and becomes the sums.
constexpr int FirstBytes(int tiles, int normed_width) {
  const int sums = kWarps * tiles * kColumns * kSumStride, norm = 2 * normed_width;
  return 4 * (sums > norm ? sums : norm);
}

using Pieces = Words<4>[2];  // of matrix rows g and g + 8

// Channels number `first`, `first` + 1, ... of this warp. A row beyond the last output has the last one's elements, and
// its results are not written.
LS_DEVICE void LoadMatrix(const RowProducts& product, int first, Pieces (&pieces)[kAhead]) {
  LS_UNROLL
  for (int i = 0; i < kAhead; ++i) {
    const int channel = ((first + i) * kWarps + Warp()) * kChannels + Lane() % 4 * 8;
    LS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int output = Block().x * kOutputs + Lane() / 4 + 8 * half;
      const int row = output < product.outputs ? output : product.outputs - 1;
      pieces[i][half] = {};
      if (channel < product.width) {
        pieces[i][half] =
            LoadConstant<4>(static_cast<const BFloat16*>(product.matrix.data) + row * product.matrix.stride + channel);
      }
    }
  }
}

// What a warp subtracts from its row, and multiplies it with.
struct RowScale {
  float mean, scale;
};
LS_DEVICE RowScale ScaleOf(const RowProducts& product, int64_t from) {
  if (product.norm.gain == nullptr) return {0.0f, 1.0f};
  const float share = Reciprocal(static_cast<float>(product.width));
  float sum = 0, squares = 0;
  for (int c = Lane() * 4; c < product.width; c += kWarpThreads * 4) {
    const SomeFloats<4> x = LoadRow<4>(ElementType::kFloat, product.sums.data, from + c);
    LS_UNROLL
    for (int i = 0; i < 4; ++i) sum = Add(sum, x.value[i]);
  }
  const float mean = Multiply(WarpSum(sum), share);
  for (int c = Lane() * 4; c < product.width; c += kWarpThreads * 4) {
    const SomeFloats<4> x = LoadRow<4>(ElementType::kFloat, product.sums.data, from + c);
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float difference = Add(x.value[i], -mean);
      squares = MultiplyAdd(difference, difference, squares);
    }
  }
  const float variance = Multiply(WarpSum(squares), share);
  return {mean, Reciprocal(SquareRoot(Add(variance, product.epsilon)))};
}

// Writes x of `rows` rows from row `first` on to `staged`, and to the inputs once. All threads call it.
LS_DEVICE void StageRows(const RowProducts& product, int64_t first, int rows, float* gains, unsigned char* staged) {
  constexpr int kOfThread = kMaxNormedWidth / kThreads;
  const bool has_norm = product.norm.gain != nullptr, is_real = Warp() < rows;
  float gain[kOfThread] = {}, bias[kOfThread] = {};
  LS_UNROLL
  for (int i = 0; i < kOfThread; ++i) {
    const int c = i * kThreads + Thread();
    if (!has_norm || c >= product.width) continue;
    gain[i] = product.norm.gain[c];
    bias[i] = product.norm.bias[c];
  }
  const int64_t row = first + Warp();
  int64_t from = 0;
  RowScale scale = {};
  if (is_real) {
    from = (product.indices != nullptr ? product.indices[row] : row) * product.sums.stride;
    scale = ScaleOf(product, from);
  }
  float* const biases = gains + product.width;
  LS_UNROLL
  for (int i = 0; i < kOfThread; ++i) {
    const int c = i * kThreads + Thread();
    if (!has_norm || c >= product.width) continue;
    gains[c] = gain[i];
    biases[c] = bias[i];
  }
  SyncBlock();
  for (int c = Lane() * 4; is_real && c < product.width; c += kWarpThreads * 4) {
    SomeFloats<4> x = LoadRow<4>(ElementType::kFloat, product.sums.data, from + c);
    LS_UNROLL
    for (int i = 0; has_norm && i < 4; ++i) {
      x.value[i] = MultiplyAdd(Multiply(Add(x.value[i], -scale.mean), scale.scale), gains[c + i], biases[c + i]);
    }
    StoreRow<4>(ElementType::kBFloat16, staged + Warp() * StagedBytes(product.width), c, x);
    if (Block().x == 0 && product.inputs.data != nullptr) {
      StoreRow<4>(ElementType::kFloat, product.inputs.data, row * product.inputs.stride + c, x);
    }
  }
  SyncBlock();
}

// A block has up to 8 * tiles rows.
template <int tiles>
LS_KERNEL(kThreads, 1)
void MultiplyRows(LS_ARGUMENTS RowProducts product) {
  Pieces pieces[kAhead];
  LoadMatrix(product, 0, pieces);

  // Thread t finishes output t % 16 of row t / 16.
  const int64_t first = int64_t{Block().y} * kFewRows, left = product.count - first;
  const int rows = left < kFewRows ? static_cast<int>(left) : static_cast<int>(kFewRows);
  const int my_row = Thread() / kOutputs, my_output = Block().x * kOutputs + Thread() % kOutputs;
  const bool is_real = my_row < rows && my_output < product.outputs;
  float bias = 0, addend = 0;
  if (is_real && product.bias != nullptr) bias = product.bias[my_output];
  if (is_real && product.addend.data != nullptr) {
    addend = static_cast<const float*>(product.addend.data)[(first + my_row) * product.addend.stride + my_output];
  }

  float* const sums = reinterpret_cast<float*>(SharedMemory());
  const unsigned char* x = static_cast<const unsigned char*>(product.rows.data) + first * product.rows.stride * 2;
  int64_t row_bytes = product.rows.stride * 2;
  if (product.rows.data == nullptr) {
    unsigned char* const staged = SharedMemory() + FirstBytes(tiles, product.width);
    StageRows(product, first, rows, /*gains=*/sums, staged);
    x = staged;
    row_bytes = StagedBytes(product.width);
  }

  const int group = Lane() / 4, quad = Lane() % 4;
  float products[tiles][4] = {};
  for (int begin = 0; (begin * kWarps + Warp()) * kChannels < product.width; begin += kAhead) {
    if (begin > 0) LoadMatrix(product, begin, pieces);
    LS_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const int channel = ((begin + i) * kWarps + Warp()) * kChannels;
      if (channel >= product.width) continue;
      LS_UNROLL
      for (int tile = 0; tile < tiles; ++tile) {
        const int row = tile * kColumns + group, piece = channel + quad * 8;
        Words<4> of_row = {};
        if (row < rows && piece < product.width) of_row = Load<4>(x + row * row_bytes + piece * 2);
        MultiplyPiece<BFloat16>(products[tile], pieces[i][0], pieces[i][1], of_row);
      }
    }
  }

  LS_UNROLL
  for (int tile = 0; tile < tiles; ++tile) {
    LS_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = tile * kColumns + 2 * quad + i % 2, output = group + i / 2 * 8;
      sums[(Warp() * tiles * kColumns + row) * kSumStride + output] = products[tile][i];
    }
  }
  SyncBlock();
  if (!is_real) return;
  float sum = 0;
  LS_UNROLL
  for (int warp = 0; warp < kWarps; ++warp) {
    sum = Add(sum, sums[(warp * tiles * kColumns + my_row) * kSumStride + Thread() % kOutputs]);
  }
  sum = Add(Activated(product.activation, Add(sum, bias)), addend);
  SetRowElement(product.result, product.output.data, (first + my_row) * product.output.stride + my_output, sum);
}

template <int tiles>
KernelCall CallOf(const RowProducts& arguments) {
  LaunchShape shape;
  shape.grid.x = BlocksFor(arguments.outputs, kOutputs);
  shape.grid.y = BlocksFor(arguments.count, kFewRows);
  shape.threads = kThreads;
  const bool is_staged = arguments.rows.data == nullptr;
  shape.shared_bytes = is_staged ? FirstBytes(tiles, arguments.width) + tiles * kColumns * StagedBytes(arguments.width)
                                 : FirstBytes(tiles, 0);
  return MakeCall<MultiplyRows<tiles>>("MultiplyRows", shape, arguments);
}

}  // namespace

KernelCall RowProductsCall(const RowProducts& arguments) {
  return arguments.count <= kColumns ? CallOf<1>(arguments) : CallOf<2>(arguments);
}

}  // namespace longshort::models::cuda
