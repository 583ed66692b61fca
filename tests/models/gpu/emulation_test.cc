// The emulator itself: the results of its instructions, and its detection of injected faults.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/device.h"
#include "tests/models/gpu/emulation/every_order.h"

namespace longshort::models::cuda::emulation_test {

using emulated::EmulationOptions;
using emulated::EveryOrder;
using emulated::RunKernel;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

struct Floats {
  const float* in;
  float* out;
  int count;
};

LaunchShape OneBlock(unsigned threads, size_t shared_bytes = 0) {
  return {.threads = threads, .shared_bytes = shared_bytes};
}

std::string ErrorOf(const KernelCall& call, const EmulationOptions& options = {}) {
  return std::string(RunKernel(call, options).message());
}

// --- threads and blocks ---

struct Places {
  int* places;
};
LS_KERNEL(64) void WritePlaces(LS_ARGUMENTS Places arguments) {
  const Index3 block = Block(), grid = Grid();
  const int index = (block.z * grid.y + block.y) * grid.x + block.x;
  arguments.places[index * 64 + Thread()] = index * 64 + Warp() * 32 + Lane();
}

TEST(Emulation, EveryThreadOfEveryBlockRunsOnce) {
  for (const EmulationOptions& options : EveryOrder()) {
    std::vector<int> places(3 * 2 * 2 * 64, -1);
    const LaunchShape shape = {.grid = {.x = 3, .y = 2, .z = 2}, .threads = 64};
    ASSERT_TRUE(RunKernel(MakeCall<WritePlaces>("WritePlaces", shape, Places{places.data()}), options).ok());
    for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(places[i], i);
  }
}

TEST(Emulation, AShapeThatNoChipLaunchesIsRefused) {
  const auto run = [](const LaunchShape& shape) {
    return ErrorOf(MakeCall<WritePlaces>("WritePlaces", shape, Places{}), {});
  };
  EXPECT_THAT(run({.threads = 48}), HasSubstr("threads is 48"));
  EXPECT_THAT(run({.threads = 1056}), HasSubstr("threads is 1056"));
  EXPECT_THAT(run({.grid = {.y = 65536}}), HasSubstr("grid.y is 65536"));
  EXPECT_THAT(run({.shared_bytes = 200000}), HasSubstr("shared_bytes is 200000"));
}

// --- meetings ---

LS_KERNEL(32) void MixLanes(LS_ARGUMENTS Floats arguments) {
  const float mine = arguments.in[Lane()];
  const double pair = Shuffle(static_cast<double>(mine) * 2, Lane() + 1);
  arguments.out[Lane()] = Shuffle(mine, 3) + ShuffleXor(mine, 5) * 100 + static_cast<float>(pair) * 10000;
}

TEST(Emulation, LanesGetWhatOthersGive) {
  std::vector<float> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[i] = static_cast<float>(i);
  for (const EmulationOptions& options : EveryOrder()) {
    ASSERT_TRUE(
        RunKernel(MakeCall<MixLanes>("MixLanes", OneBlock(32), Floats{in.data(), out.data(), 32}), options).ok());
    for (int i = 0; i < 32; ++i) {
      EXPECT_FLOAT_EQ(out[i], 3 + static_cast<float>(i ^ 5) * 100 + static_cast<float>((i + 1) % 32) * 20000);
    }
  }
}

template <bool kWithBarrier>
LS_KERNEL(96)
void Reverse(LS_ARGUMENTS Floats arguments) {
  auto* const shared = reinterpret_cast<float*>(SharedMemory());
  shared[Thread()] = arguments.in[Thread()];
  if (kWithBarrier) SyncBlock();
  arguments.out[Thread()] = shared[95 - Thread()];
}

template <bool kWithBarrier>
std::vector<float> Reversed(const EmulationOptions& options) {
  std::vector<float> in(96), out(96);
  for (int i = 0; i < 96; ++i) in[i] = static_cast<float>(i);
  const Floats arguments = {in.data(), out.data(), 96};
  EXPECT_TRUE(RunKernel(MakeCall<Reverse<kWithBarrier>>("Reverse", OneBlock(96, 96 * 4), arguments), options).ok());
  return out;
}

TEST(Emulation, WhatWasWrittenBeforeABarrierIsSeenAfterIt) {
  for (const EmulationOptions& options : EveryOrder()) {
    const std::vector<float> out = Reversed<true>(options);
    for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], 95 - i) << NameOf(options);
  }
}

#if !defined(__SANITIZE_THREAD__)
TEST(PlantedFaults, WithoutABarrierSomeReadNaN) {
  for (const EmulationOptions& options : EveryOrder()) {
    int unset = 0;
    for (const float value : Reversed<false>(options)) unset += std::isnan(value);
    EXPECT_GT(unset, 10) << NameOf(options);
  }
}
#else
TEST(PlantedFaults, WithoutABarrierTheThreadSanitizerReports) {
  EXPECT_EXIT((Reversed<false>({}), std::exit(0)), ::testing::ExitedWithCode(66), "data race");
}

// All blocks add to the same address, which is correct only by chance, if blocks run in turn.
LS_KERNEL(32) void AddUp(LS_ARGUMENTS Floats arguments) {
  if (Thread() == Block().x) arguments.out[0] += 1;
}
TEST(PlantedFaults, BlocksThatWriteTheSamePlaceAreReported) {
  EXPECT_EXIT(
      {
        float out = 0;
        const LaunchShape shape = {.grid = {.x = 2}};
        RunKernel(MakeCall<AddUp>("AddUp", shape, Floats{nullptr, &out, 1}), {}).IgnoreError();
        std::exit(0);
      },
      ::testing::ExitedWithCode(66), "data race");
}
#endif

LS_KERNEL(64) void DivergentBarrier(LS_ARGUMENTS Floats) {
  if (Warp() == 0) SyncBlock();
  Shuffle(1.0f, 0);
}
LS_KERNEL(64) void TwoBarriers(LS_ARGUMENTS Floats) {
  if (Warp() == 0) {
    SyncBlock();
  } else {
    SyncBlock();
  }
}
LS_KERNEL(64) void DivergentShuffle(LS_ARGUMENTS Floats) {
  if (Lane() < 16) Shuffle(1.0f, 0);
  SyncBlock();
}
LS_KERNEL(32) void DifferentMeetings(LS_ARGUMENTS Floats) {
  if (Lane() < 16) {
    Shuffle(1.0f, 0);
  } else {
    SyncWarp();
  }
}

TEST(PlantedFaults, ABarrierThatNotAllReachIsAnError) {
  for (const EmulationOptions& options : EveryOrder()) {
    // As on a GPU, barriers do not wait for threads that have ended.
    EXPECT_TRUE(RunKernel(MakeCall<DivergentBarrier>("Divergent", OneBlock(64), Floats{}), options).ok());
    EXPECT_THAT(ErrorOf(MakeCall<TwoBarriers>("TwoBarriers", OneBlock(64), Floats{}), options),
                AllOf(HasSubstr("kernel TwoBarriers, block (0, 0, 0)"), HasSubstr("threads meet at different barriers"),
                      HasSubstr("thread 0 at the SyncBlock of line")));
    EXPECT_THAT(ErrorOf(MakeCall<DivergentShuffle>("DivergentShuffle", OneBlock(64), Floats{}), options),
                AllOf(HasSubstr("a barrier that not all threads reach"), HasSubstr("thread 0 at Shuffle"),
                      HasSubstr("thread 16 at the SyncBlock of line")));
    EXPECT_THAT(ErrorOf(MakeCall<DifferentMeetings>("DifferentMeetings", OneBlock(32), Floats{}), options),
                AllOf(HasSubstr("lanes of a warp meet at different instructions"), HasSubstr("SyncWarp")));
  }
}

// --- memory ---

template <int kWords>
LS_KERNEL(32)
void CopyWords(LS_ARGUMENTS Floats arguments) {
  if (Thread() * kWords < arguments.count)
    Store<kWords>(arguments.out + Thread() * kWords, LoadConstant<kWords>(arguments.in + Thread() * kWords));
}

TEST(PlantedFaults, AVectorThatIsNotAlignedIsAnError) {
  alignas(16) float in[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, out[9] = {};
  EXPECT_TRUE(RunKernel(MakeCall<CopyWords<4>>("CopyWords", OneBlock(32), Floats{in, out, 8}), {}).ok());
  EXPECT_THAT(std::vector<float>(out, out + 8), ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(ErrorOf(MakeCall<CopyWords<4>>("CopyWords", OneBlock(32), Floats{in + 1, out, 8}), {}),
              HasSubstr("loads from an address that is not aligned"));
  EXPECT_THAT(ErrorOf(MakeCall<CopyWords<2>>("CopyWords", OneBlock(32), Floats{in, out + 1, 8}), {}),
              HasSubstr("stores to an address that is not aligned"));
}

LS_KERNEL(32) void WritePastShared(LS_ARGUMENTS Floats arguments) {
  reinterpret_cast<float*>(SharedMemory())[Thread() + 1] = static_cast<float>(arguments.count);
}

TEST(PlantedFaults, AWritePastSharedMemoryIsNoticed) {
  const KernelCall call = MakeCall<WritePastShared>("WritePastShared", OneBlock(32, 128), Floats{nullptr, nullptr, 1});
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(RunKernel(call, {}).IgnoreError(), "use-after-poison.*WRITE of size 4");
#else
  EXPECT_THAT(ErrorOf(call, {}), HasSubstr("writes beside its shared memory"));
#endif
}

#if defined(__SANITIZE_ADDRESS__)
LS_KERNEL(32) void WritePastOutput(LS_ARGUMENTS Floats arguments) { arguments.out[Thread() + 1] = 1; }
TEST(PlantedFaults, AWritePastTheOutputIsReported) {
  std::vector<float> out(32);
  const KernelCall call = MakeCall<WritePastOutput>("WritePastOutput", OneBlock(32), Floats{nullptr, out.data(), 32});
  EXPECT_DEATH(RunKernel(call, {}).IgnoreError(), "heap-buffer-overflow.*WRITE of size 4");
}
#endif

// Two groups of copies, with or without a wait for the second.
template <int kLeft>
LS_KERNEL(32)
void CopyTwice(LS_ARGUMENTS Floats arguments) {
  auto* const shared = reinterpret_cast<float*>(SharedMemory());
  CopyAsync(shared + Thread() * 4, arguments.in + Thread() * 4, true);
  CommitCopies();
  CopyAsync(shared + 128 + Thread() * 4, arguments.in + Thread() * 4, Thread() != 1);
  CommitCopies();
  WaitForCopies<kLeft>();
  SyncBlock();
  for (int i = Thread(); i < 256; i += 32) arguments.out[i] = shared[i];
}

template <int kLeft>
std::vector<float> CopiedTwice(const EmulationOptions& options) {
  alignas(16) float in[128];
  for (int i = 0; i < 128; ++i) in[i] = static_cast<float>(i + 1);
  std::vector<float> out(256);
  const KernelCall call = MakeCall<CopyTwice<kLeft>>("CopyTwice", OneBlock(32, 1024), Floats{in, out.data(), 256});
  EXPECT_TRUE(RunKernel(call, options).ok());
  return out;
}

TEST(Emulation, CopiesAreThereOnceTheyAreWaitedFor) {
  for (const EmulationOptions& options : EveryOrder()) {
    const std::vector<float> out = CopiedTwice<0>(options);
    for (int i = 0; i < 256; ++i) {
      const bool left_out = i / 4 == 32 + 1;
      EXPECT_EQ(out[i], left_out ? 0 : i % 128 + 1);
    }
  }
}

TEST(PlantedFaults, WithoutAWaitThereIsNaNUnlessCopiesAreMadeAtOnce) {
  const std::vector<float> late = CopiedTwice<1>({.copies_at_once = false});
  EXPECT_EQ(late[127], 128);
  EXPECT_TRUE(std::isnan(late[128]));
  EXPECT_EQ(CopiedTwice<1>({.copies_at_once = true})[128], 1);
}

// Each thread waits for its own copy, before the barrier or after it, and reads another warp's.
template <bool kWaitsFirst>
LS_KERNEL(64)
void CopyForOthers(LS_ARGUMENTS Floats arguments) {
  auto* const shared = reinterpret_cast<float*>(SharedMemory());
  CopyAsync(shared + Thread() * 4, arguments.in + Thread() * 4, true);
  CommitCopies();
  if (kWaitsFirst) WaitForCopies<0>();
  SyncBlock();
  if (!kWaitsFirst) WaitForCopies<0>();
  SyncWarp();
  arguments.out[Thread()] = shared[(Thread() ^ 32) * 4];
}

template <bool kWaitsFirst>
bool ReadsNaN(const EmulationOptions& options) {
  alignas(16) float in[256] = {};
  std::vector<float> out(64);
  const Floats arguments = {in, out.data(), 64};
  EXPECT_TRUE(RunKernel(MakeCall<CopyForOthers<kWaitsFirst>>("Copy", OneBlock(64, 1024), arguments), options).ok());
  return std::any_of(out.begin(), out.end(), [](float value) { return std::isnan(value); });
}

TEST(Emulation, CopiesThatAreWaitedForBeforeABarrierAreThereForAllWarps) {
  for (const EmulationOptions& options : EveryOrder()) EXPECT_FALSE(ReadsNaN<true>(options)) << NameOf(options);
}

#if !defined(__SANITIZE_THREAD__)
TEST(PlantedFaults, AWaitBehindTheBarrierIsSeenWhereOneWarpRunsAhead) {
  EXPECT_TRUE(ReadsNaN<false>({.order = emulated::ThreadOrder::kWarpByWarp}));
  EXPECT_FALSE(ReadsNaN<false>({})) << "round robin, all threads wait before one reads";
}
#endif

TEST(Emulation, SharedMemoryIsNaNAtTheStartOfEachBlock) {
  // The kernel without barriers again: it would find the leftovers of a previous block.
  const auto kernel =
      MakeCall<CopyTwice<2>>("CopyTwice", LaunchShape{.grid = {.x = 2}, .shared_bytes = 1024}, Floats{});
  alignas(16) float in[128] = {};
  std::vector<float> out(256);
  KernelCall call = kernel;
  call.SetArguments(Floats{in, out.data(), 256});
  ASSERT_TRUE(RunKernel(call, {}).ok());
  EXPECT_THAT(out, Each(::testing::IsNan()));
}

// --- tensor cores ---

struct Matrices {
  const void* a;  // [16][depth]
  const void* b;  // [8][depth]: b[n] is column n
  float* d;       // [16][8]
};

// Element by element, at the places that the PTX manual specifies.
template <typename Element>
LS_KERNEL(32)
void MultiplyFragments(LS_ARGUMENTS Matrices arguments) {
  const int group = Lane() / 4, quad = Lane() % 4;
  float d[4] = {1, 2, 3, 4};
  uint32_t a[4], b[2];
  for (int half = 0; half < 2; ++half) {
    if constexpr (sizeof(Element) == 4) {
      const auto* const rows = static_cast<const float*>(arguments.a);
      const auto* const columns = static_cast<const float*>(arguments.b);
      a[2 * half] = ToTf32(rows[group * 8 + quad + 4 * half]);
      a[2 * half + 1] = ToTf32(rows[(group + 8) * 8 + quad + 4 * half]);
      b[half] = ToTf32(columns[group * 8 + quad + 4 * half]);
    } else {
      const auto* const rows = static_cast<const uint32_t*>(arguments.a);
      const auto* const columns = static_cast<const uint32_t*>(arguments.b);
      a[2 * half] = rows[group * 8 + quad + 4 * half];
      a[2 * half + 1] = rows[(group + 8) * 8 + quad + 4 * half];
      b[half] = columns[group * 8 + quad + 4 * half];
    }
  }
  if constexpr (sizeof(Element) == 4) {
    MultiplyTf32Matrices(d, a, b[0], b[1]);
  } else {
    MultiplyMatrices(d, a, b[0], b[1]);
  }
  for (int i = 0; i < 4; ++i) arguments.d[(group + i / 2 * 8) * 8 + 2 * quad + i % 2] = d[i];
}

template <typename Element>
class TensorCores : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(TensorCores, ElementTypes);

TYPED_TEST(TensorCores, MultiplyAsAPlainLoop) {
  constexpr int kDepth = sizeof(TypeParam) == 4 ? 8 : 16;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<TypeParam> a(16 * kDepth), b(8 * kDepth);
  // Numbers that TF32 represents exactly, too.
  const auto draw = [&](TypeParam& to) { Convert(FloatOf(ToTf32(normal(random))), to); };
  for (TypeParam& element : a) draw(element);
  for (TypeParam& element : b) draw(element);
  for (const EmulationOptions& options : EveryOrder()) {
    std::vector<float> d(16 * 8);
    const Matrices arguments = {a.data(), b.data(), d.data()};
    ASSERT_TRUE(RunKernel(MakeCall<MultiplyFragments<TypeParam>>("Multiply", OneBlock(32), arguments), options).ok());
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        double sum = row / 8 * 2 + column % 2 + 1;  // the previous value of d
        for (int k = 0; k < kDepth; ++k) {
          sum += static_cast<double>(ToFloat(a[row * kDepth + k])) * ToFloat(b[column * kDepth + k]);
        }
        EXPECT_NEAR(d[row * 8 + column], sum, 2e-6);
      }
    }
  }
}

struct LoadedMatrices {
  const uint16_t* in;  // [32 rows][8]: matrix m is rows 8m .. 8m+7
  uint32_t* out;       // [32 lanes][4]: transposed
};
LS_KERNEL(32) void LoadAll(LS_ARGUMENTS LoadedMatrices arguments) {
  auto* const shared = reinterpret_cast<uint16_t*>(SharedMemory());
  for (int i = Thread(); i < 256; i += 32) shared[i] = arguments.in[i];
  SyncBlock();
  uint32_t matrices[4];
  LoadMatricesTransposed(matrices, shared + Lane() * 8);
  for (int m = 0; m < 4; ++m) arguments.out[Lane() * 4 + m] = matrices[m];
}

TEST(TensorCoreLoads, GiveEachLaneItsElements) {
  std::vector<uint16_t> in(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> out(128);
  const LoadedMatrices arguments = {in.data(), out.data()};
  ASSERT_TRUE(RunKernel(MakeCall<LoadAll>("LoadAll", OneBlock(32, 512), arguments), {}).ok());
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const auto at = [&](int row, int column) { return static_cast<uint32_t>((8 * m + row) * 8 + column); };
      const int g = lane / 4, q = lane % 4;
      EXPECT_EQ(out[lane * 4 + m], at(2 * q, g) | at(2 * q + 1, g) << 16);
    }
  }
}

// --- numbers ---

TEST(Numbers, AreRoundedToNearestTiesToEven) {
  const auto bits = [](float from) {
    BFloat16 to;
    Convert(from, to);
    return to.bits;
  };
  EXPECT_EQ(bits(1.0f), 0x3f80);
  EXPECT_EQ(bits(FloatOf(0x3f808000)), 0x3f80);  // a tie: the even one
  EXPECT_EQ(bits(FloatOf(0x3f818000)), 0x3f82);
  EXPECT_EQ(bits(FloatOf(0x3f808001)), 0x3f81);
  EXPECT_TRUE(std::isnan(ToFloat(BFloat16{bits(std::nanf(""))})));
  EXPECT_EQ(PackBFloat16(1.0f, 2.0f), 0x40003f80u);
  EXPECT_EQ(ToTf32(FloatOf(0x3f801000)), 0x3f802000u);  // a tie: away from zero
  EXPECT_EQ(Exp2(kMinusInfinity), 0.0f);
  EXPECT_EQ(Larger(std::nanf(""), 1.0f), 1.0f);
}

}  // namespace longshort::models::cuda::emulation_test
