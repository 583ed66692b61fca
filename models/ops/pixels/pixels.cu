// Normalises pixels: thread blocks of one channel of an image each, n adjacent pixels a thread.
#include "models/device/device.h"
#include "models/ops/pixels/pixels_kernels.h"
#include "models/ops/rows/kernel_choice.h"
#include "models/ops/rows/row_access.h"

namespace longshort::models::cuda {
namespace {

constexpr int kThreads = 128;

template <int n>
LS_KERNEL(kThreads)
void NormalisePixels(LS_ARGUMENTS PixelsToNormalise arguments) {
  const int pixel = (Block().y * kThreads + Thread()) * n;
  if (pixel >= arguments.plane) return;
  const int64_t place = int64_t{Block().x} * arguments.plane + pixel;
  SomeFloats<n> floats;
  if (*arguments.are_bytes == 0) {
    floats = LoadRow<n>(ElementType::kFloat, arguments.pixels, place);
  } else {
    const float* const table = arguments.table + Block().x % arguments.channels * 256;
    const unsigned char* const bytes = static_cast<const unsigned char*>(arguments.pixels) + place;
    if constexpr (n == 1) {
      floats.value[0] = table[*bytes];
    } else {
      const uint32_t word = Load<1>(bytes).word[0];
      LS_UNROLL
      for (int i = 0; i < n; ++i) floats.value[i] = table[word >> (8 * i) & 0xffu];
    }
  }
  StoreRow<n>(ElementType::kFloat, arguments.values, place, floats);
}

template <int n>
KernelCall CallOf(const PixelsToNormalise& arguments) {
  LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(arguments.images * arguments.channels);
  shape.grid.y = BlocksFor(arguments.plane, kThreads * n);
  shape.threads = kThreads;
  return MakeCall<NormalisePixels<n>>("NormalisePixels", shape, arguments);
}

}  // namespace

KernelCall NormalisePixelsCall(const PixelsToNormalise& arguments) {
  const auto address = reinterpret_cast<uintptr_t>(arguments.pixels) | reinterpret_cast<uintptr_t>(arguments.values);
  return arguments.plane % 4 == 0 && address % 16 == 0 ? CallOf<4>(arguments) : CallOf<1>(arguments);
}

}  // namespace longshort::models::cuda
