// Norms: one warp per row, which it keeps in shared memory, [warps][width] float32. Each lane accesses its own
// elements only.
#include "models/device/device.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/many_norms.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = kThreads / kWarpThreads;

template <int n>
LS_KERNEL(kThreads)
void NormMany(LS_ARGUMENTS ManyNorms arguments) {
  const RowNorm& norm = arguments.each[Block().y];
  const int64_t row = int64_t{Block().x} * kRows + Warp();
  if (row >= arguments.count) return;
  const ElementType type = arguments.element;
  const int width = arguments.width, first = n * Lane(), step = n * kWarpThreads;
  float* const floats = reinterpret_cast<float*>(SharedMemory()) + Warp() * width;

  float sum = 0;
  for (int c = first; c < width; c += step) {
    const SomeFloats<n> some = LoadRow<n>(type, norm.input.data, row * norm.input.stride + c);
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      floats[c + i] = some.value[i];
      sum = Add(sum, some.value[i]);
    }
  }
  const float share = Reciprocal(static_cast<float>(width)), mean = Multiply(WarpSum(sum), share);
  float squares = 0;
  for (int c = first; c < width; c += step) {
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      const float difference = Add(floats[c + i], -mean);
      squares = MultiplyAdd(difference, difference, squares);
    }
  }
  const float scale = Reciprocal(SquareRoot(Add(Multiply(WarpSum(squares), share), arguments.epsilon)));
  for (int c = first; c < width; c += step) {
    const SomeFloats<n> gain = LoadRow<n>(ElementType::kFloat, norm.norm.gain, c),
                        bias = LoadRow<n>(ElementType::kFloat, norm.norm.bias, c);
    SomeFloats<n> normalized;
    LS_UNROLL
    for (int i = 0; i < n; ++i) {
      normalized.value[i] = MultiplyAdd(Multiply(Add(floats[c + i], -mean), scale), gain.value[i], bias.value[i]);
    }
    StoreRow<n>(type, norm.output.data, row * norm.output.stride + c, normalized);
  }
}

template <int n>
KernelCall CallOf(const ManyNorms& arguments) {
  LaunchShape shape;
  shape.grid.x = BlocksFor(arguments.count, kRows);
  shape.grid.y = static_cast<unsigned>(arguments.kinds);
  shape.threads = kThreads;
  shape.shared_bytes = kRows * arguments.width * sizeof(float);
  return MakeCall<NormMany<n>>("NormMany", shape, arguments);
}

}  // namespace

KernelCall ManyNormsCall(const ManyNorms& arguments) {
  bool aligned = arguments.width % 4 == 0;
  for (int i = 0; i < arguments.kinds; ++i) {
    const RowNorm& norm = arguments.each[i];
    aligned = aligned && IsAligned(norm.input) && IsAligned(norm.norm) && IsAligned(norm.output);
  }
  return aligned ? CallOf<4>(arguments) : CallOf<1>(arguments);
}

}  // namespace longshort::models::cuda
