// device.h for the CPU: the counterpart of each function of device_instructions.h. Accesses to the kernel's memory are
// in this header, so that the sanitizers of the kernel's own file see them.
#pragma once

#include <cmath>
#include <cstring>

#include "models/device/device.h"
#include "tests/models/gpu/emulation/block.h"

namespace longshort::models::cuda {

LS_DEVICE int Thread() { return emulated::CurrentThread(); }
LS_DEVICE int Lane() { return emulated::CurrentLane(); }
LS_DEVICE int Warp() { return emulated::CurrentWarp(); }
LS_DEVICE Index3 IndexOf(const GridSize& size) {
  return {static_cast<int>(size.x), static_cast<int>(size.y), static_cast<int>(size.z)};
}
LS_DEVICE Index3 Block() { return IndexOf(emulated::CurrentBlock()); }
LS_DEVICE Index3 Grid() { return IndexOf(emulated::CurrentGrid()); }

LS_DEVICE void SyncBlock(int line) { emulated::MeetBlock(line); }
LS_DEVICE void SyncWarp() { emulated::Meet(emulated::Meeting::kSyncWarp, {}); }

template <typename T>
LS_DEVICE T OfLane(const emulated::LaneBytes* all, int lane) {
  T value;
  __builtin_memcpy(&value, all[lane].bytes, sizeof(T));
  return value;
}
template <typename T>
LS_DEVICE const emulated::LaneBytes* Give(emulated::Meeting meeting, const T& mine) {
  static_assert(sizeof(T) <= sizeof(emulated::LaneBytes));
  emulated::LaneBytes bytes = {};
  __builtin_memcpy(bytes.bytes, &mine, sizeof(T));
  return emulated::Meet(meeting, bytes);
}

template <typename T>
LS_DEVICE T Shuffle(T mine, int from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  return OfLane<T>(Give(emulated::Meeting::kShuffle, mine), from & (kWarpThreads - 1));
}
template <typename T>
LS_DEVICE T ShuffleXor(T mine, int with) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  const emulated::LaneBytes* const all = Give(emulated::Meeting::kShuffle, mine);
  return OfLane<T>(all, (Lane() ^ with) & (kWarpThreads - 1));
}

LS_DEVICE unsigned char* SharedMemory() { return emulated::CurrentSharedMemory(); }
template <int n>
LS_DEVICE Words<n> Load(const void* from) {
  static_assert(n == 1 || n == 2 || n == 4);
  emulated::CheckAligned(from, sizeof(Words<n>), "loads from an address that is not aligned:");
  Words<n> words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}
template <int n>
LS_DEVICE void Store(void* to, const Words<n>& words) {
  static_assert(n == 1 || n == 2 || n == 4);
  emulated::CheckAligned(to, sizeof(Words<n>), "stores to an address that is not aligned:");
  std::memcpy(to, &words, sizeof(words));
}
template <int n>
LS_DEVICE Words<n> LoadConstant(const void* from) {
  return Load<n>(from);
}

LS_DEVICE void CopyNow(const emulated::PendingCopy& copy) {
  if (copy.from != nullptr) {
    std::memcpy(copy.to, copy.from, 16);
  } else {
    std::memset(copy.to, 0, 16);
  }
}
LS_DEVICE void CopyAsync(void* shared, const void* global, bool real) {
  emulated::CheckAligned(shared, 16, "copies to an address that is not aligned:");
  emulated::CheckAligned(global, 16, "copies from an address that is not aligned:");
  const emulated::PendingCopy copy = {shared, real ? global : nullptr};
  if (emulated::CopiesAreMadeAtOnce()) {
    CopyNow(copy);
  } else {
    emulated::AddCopy(copy);
  }
}
LS_DEVICE void CommitCopies() { emulated::CloseCopyGroup(); }
template <int kLeft>
LS_DEVICE void WaitForCopies() {
  emulated::PendingCopy copy;
  while (emulated::TakeCopy(kLeft, copy)) CopyNow(copy);
}

// Each lane reads its own elements.
LS_DEVICE const uint16_t* MatrixRow(const emulated::LaneBytes* rows, int matrix, int row) {
  return OfLane<const uint16_t*>(rows, 8 * matrix + row);
}
LS_DEVICE void LoadMatricesTransposed(uint32_t (&matrices)[4], const void* row) {
  emulated::CheckAligned(row, 16, "gives LoadMatricesTransposed a row that is not aligned:");
  const emulated::LaneBytes* const rows = Give(emulated::Meeting::kLoadMatrices, row);
  for (int m = 0; m < 4; ++m) {
    const uint16_t first = MatrixRow(rows, m, Lane() % 4 * 2)[Lane() / 4];
    const uint16_t second = MatrixRow(rows, m, Lane() % 4 * 2 + 1)[Lane() / 4];
    matrices[m] = first | static_cast<uint32_t>(second) << 16;
  }
}

LS_DEVICE void MultiplyWith(emulated::Meeting meeting, float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                            uint32_t b1) {
  struct Operands {
    uint32_t a[4], b[2];
  };
  struct Sums {
    float d[4];
  };
  const Sums sums = OfLane<Sums>(Give(meeting, Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}}), Lane());
  for (int i = 0; i < 4; ++i) d[i] += sums.d[i];
}
LS_DEVICE void MultiplyMatrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  MultiplyWith(emulated::Meeting::kMultiply16, d, a, b0, b1);
}
LS_DEVICE void MultiplyTf32Matrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  MultiplyWith(emulated::Meeting::kMultiplyTf32, d, a, b0, b1);
}

LS_DEVICE float FloatOf(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
LS_DEVICE uint32_t BitsOf(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
LS_DEVICE float ToFloat(float value) { return value; }
LS_DEVICE float ToFloat(BFloat16 value) { return FloatOf(static_cast<uint32_t>(value.bits) << 16); }
LS_DEVICE void Convert(float from, float& to) { to = from; }
LS_DEVICE void Convert(float from, BFloat16& to) {
  const uint32_t bits = BitsOf(from);
  to.bits = std::isnan(from) ? 0x7fff : static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
LS_DEVICE uint32_t PackBFloat16(float first, float second) {
  BFloat16 lower, upper;
  Convert(first, lower);
  Convert(second, upper);
  return lower.bits | static_cast<uint32_t>(upper.bits) << 16;
}
LS_DEVICE uint32_t ToTf32(float value) { return (BitsOf(value) + 0x1000u) & 0xffffe000u; }

LS_DEVICE float Add(float a, float b) { return a + b; }
LS_DEVICE float Multiply(float a, float b) { return a * b; }
LS_DEVICE float MultiplyAdd(float a, float b, float c) { return std::fma(a, b, c); }
LS_DEVICE float Reciprocal(float value) { return 1.0f / value; }
LS_DEVICE float SquareRoot(float value) { return std::sqrt(value); }
LS_DEVICE float Larger(float a, float b) { return std::fmax(a, b); }
LS_DEVICE float Exp2(float value) { return std::exp2(value); }
LS_DEVICE float Erf(float value) { return std::erf(value); }

// One thread's run of the kernel, whose arguments are at `arguments`.
template <auto kKernel, typename Arguments>
void RunOneThread(const void* arguments) {
  kKernel(*static_cast<const Arguments*>(arguments));
}
template <auto kKernel, typename Arguments>
KernelCall MakeCall(const char* name, const LaunchShape& shape, const Arguments& arguments) {
  KernelCall call;
  call.name = name;
  call.function = reinterpret_cast<const void*>(kKernel);
  call.run = &RunOneThread<kKernel, Arguments>;
  call.shape = shape;
  Arguments values = arguments;
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&values);  // so that equal arguments have equal bytes
#endif
  call.SetArguments(values);
  return call;
}

}  // namespace longshort::models::cuda
