#include "models/device/device.h"
#include "tests/models/gpu/instruction_kernels.h"

namespace longshort::models::cuda {
namespace {

LaunchShape OneBlock(unsigned threads, size_t shared_bytes = 0) {
  LaunchShape shape;
  shape.threads = threads;
  shape.shared_bytes = shared_bytes;
  return shape;
}

LS_KERNEL(64) void Where(LS_ARGUMENTS WherePlaces arguments) {
  int* const place = arguments.places + (Block().x * 64 + Thread()) * 6;
  place[0] = Block().x + 10 * Block().y + 100 * Block().z;
  place[1] = Grid().x + 10 * Grid().y + 100 * Grid().z;
  place[2] = Thread();
  place[3] = Lane();
  place[4] = Warp();
  place[5] = static_cast<int>(reinterpret_cast<uintptr_t>(SharedMemory()) % 128);
}

LS_KERNEL(32) void Exchange(LS_ARGUMENTS LaneExchange arguments) {
  const float mine = arguments.in[Lane()];
  float* const out = arguments.out + 3 * Lane();
  out[0] = Shuffle(mine, Lane() + 1);
  out[1] = ShuffleXor(mine, 5);
  out[2] = static_cast<float>(Shuffle(static_cast<double>(mine) / 3, 3));
}

LS_KERNEL(96) void Reverse(LS_ARGUMENTS Reversal arguments) {
  auto* const shared = reinterpret_cast<float*>(SharedMemory());
  shared[Thread()] = arguments.in[Thread()];
  SyncBlock();
  arguments.out[Thread()] = shared[95 - Thread()];
  SyncBlock();
  shared[Thread()] = 2 * arguments.in[Thread()];
  SyncWarp();
  arguments.out_of_warp[Thread()] = shared[32 * Warp() + 31 - Lane()];
}

template <int n>
LS_DEVICE void CopyBoth(const WordCopies& arguments, uint32_t* out) {
  for (int i = n * Lane(); i < 128; i += n * kWarpThreads) {
    Store<n>(out + i, Load<n>(arguments.in + i));
    Store<n>(out + 128 + i, LoadConstant<n>(arguments.in + i));
  }
}
LS_KERNEL(32) void CopyWords(LS_ARGUMENTS WordCopies arguments) {
  CopyBoth<1>(arguments, arguments.out);
  CopyBoth<2>(arguments, arguments.out + 256);
  CopyBoth<4>(arguments, arguments.out + 512);
  auto* const shared = reinterpret_cast<uint32_t*>(SharedMemory());
  CopyAsync(shared + 4 * Lane(), arguments.in + 4 * Lane(), Lane() != 1);
  CommitCopies();
  CopyAsync(shared + 128 + 4 * Lane(), arguments.in + 128 + 4 * Lane(), true);
  CommitCopies();
  WaitForCopies<1>();
  SyncBlock();
  for (int i = Lane(); i < 128; i += kWarpThreads) arguments.out[768 + i] = shared[i];
  WaitForCopies<0>();
  SyncBlock();
}

LS_KERNEL(32) void LoadAll(LS_ARGUMENTS MatrixLoads arguments) {
  auto* const shared = reinterpret_cast<uint16_t*>(SharedMemory());
  for (int i = Thread(); i < 256; i += kWarpThreads) shared[i] = arguments.in[i];
  SyncBlock();
  uint32_t matrices[4];
  LoadMatricesTransposed(matrices, shared + Lane() * 8);
  for (int m = 0; m < 4; ++m) arguments.out[Lane() * 4 + m] = matrices[m];
}

template <ProductType type>
LS_KERNEL(32)
void Multiplied(LS_ARGUMENTS MatrixProduct arguments) {
  const int group = Lane() / 4, quad = Lane() % 4;
  const auto* const rows = static_cast<const uint32_t*>(arguments.a);
  const auto* const columns = static_cast<const uint32_t*>(arguments.b);
  // A row is 8 words of either kind: 16 elements of two bytes, or 8 floats.
  const auto word = [](uint32_t bits) { return type == ProductType::kTf32 ? ToTf32(FloatOf(bits)) : bits; };
  uint32_t a[4], b[2];
  for (int half = 0; half < 2; ++half) {
    a[2 * half] = word(rows[group * 8 + quad + 4 * half]);
    a[2 * half + 1] = word(rows[(group + 8) * 8 + quad + 4 * half]);
    b[half] = word(columns[group * 8 + quad + 4 * half]);
  }
  float d[4];
  for (int i = 0; i < 4; ++i) d[i] = arguments.d[(group + i / 2 * 8) * 8 + 2 * quad + i % 2];
  if constexpr (type == ProductType::kTf32) {
    MultiplyTf32Matrices(d, a, b[0], b[1]);
  } else {
    MultiplyMatrices(d, a, b[0], b[1]);
  }
  for (int i = 0; i < 4; ++i) arguments.d[(group + i / 2 * 8) * 8 + 2 * quad + i % 2] = d[i];
}

LS_KERNEL(32) void Numbers(LS_ARGUMENTS NumberFunctions arguments) {
  for (int i = Thread(); i < arguments.count; i += kWarpThreads) {
    const float x = arguments.in[i], y = arguments.in[arguments.count - 1 - i];
    float* const out = arguments.out + int64_t{i} * kNumberFunctions;
    BFloat16 rounded;
    Convert(x, rounded);
    out[0] = ToFloat(rounded);
    out[1] = FloatOf(PackBFloat16(x, y));
    out[2] = FloatOf(ToTf32(x));
    out[3] = Add(x, y);
    out[4] = Multiply(x, y);
    out[5] = MultiplyAdd(x, y, x);
    out[6] = Reciprocal(x);
    out[7] = SquareRoot(Multiply(x, x));
    out[8] = Larger(x, y);
    out[9] = FloatOf(BitsOf(x) + 1);
    out[10] = Exp2(x);
    out[11] = Erf(x);
  }
}

}  // namespace

KernelCall WhereCall(const WherePlaces& arguments) {
  LaunchShape shape = OneBlock(64);
  shape.grid.x = 2;
  return MakeCall<Where>("Where", shape, arguments);
}
KernelCall ExchangeCall(const LaneExchange& arguments) {
  return MakeCall<Exchange>("Exchange", OneBlock(32), arguments);
}
KernelCall ReverseCall(const Reversal& arguments) {
  return MakeCall<Reverse>("Reverse", OneBlock(96, 96 * 4), arguments);
}
KernelCall CopyWordsCall(const WordCopies& arguments) {
  return MakeCall<CopyWords>("CopyWords", OneBlock(32, 1024), arguments);
}
KernelCall LoadMatricesCall(const MatrixLoads& arguments) {
  return MakeCall<LoadAll>("LoadAll", OneBlock(32, 512), arguments);
}
KernelCall MultiplyCall(ProductType type, const MatrixProduct& arguments) {
  switch (type) {
    case ProductType::kBFloat16:
      return MakeCall<Multiplied<ProductType::kBFloat16>>("Multiplied", OneBlock(32), arguments);
    default:
      return MakeCall<Multiplied<ProductType::kTf32>>("Multiplied", OneBlock(32), arguments);
  }
}
KernelCall NumbersCall(const NumberFunctions& arguments) {
  return MakeCall<Numbers>("Numbers", OneBlock(32), arguments);
}

}  // namespace longshort::models::cuda
