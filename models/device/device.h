// Everything that a kernel may use, so that one source has two implementations. nvcc compiles it for the GPU
// (device_instructions.h). Any other compiler uses the emulator of the tests, where the threads of a block are fibers
// on the CPU. Nothing else compiles there: no threadIdx, no __shared__, no intrinsics. The instructions are those of
// sm_80, which every later chip has.
//
//   LS_KERNEL(128) void Twice(LS_ARGUMENTS TwiceArguments arguments) { ... }
//   KernelCall TwiceCall(const TwiceArguments& arguments) { return MakeCall<Twice>("Twice", shape, arguments); }
//
// Rules, which the emulator checks:
//  - Blocks have one axis and whole warps. Every shuffle, vote and matrix instruction is for all 32 lanes of a warp.
//  - There are no atomics, and blocks do not wait for other blocks: a result depends on its operands only, never on
//  order.
//  - Shared memory is uninitialised (NaN in the emulator). Its addresses begin at a multiple of 128.
//  - Sums that two kernels must compute identically use Add, Multiply and MultiplyAdd, which compilers do not fuse.
#pragma once

#include <cstdint>

#include "models/device/kernel_call.h"

#ifdef __CUDACC__
#define LS_DEVICE __device__ __forceinline__
// LS_KERNEL(threads): a kernel whose blocks have at most `threads` threads. A second argument is the minimum number of
// resident blocks.
#define LS_KERNEL(...) static __global__ __launch_bounds__(__VA_ARGS__)
#define LS_ARGUMENTS const __grid_constant__
#define LS_UNROLL _Pragma("unroll")
#elif defined(LONGSHORT_CUDA_EMULATION)
#define LS_DEVICE inline
#define LS_KERNEL(...) [[maybe_unused]] static
#define LS_ARGUMENTS const
#define LS_UNROLL
#else
#error "kernels are compiled by nvcc, or with LONGSHORT_CUDA_EMULATION naming the emulator's instructions.h"
#endif

namespace longshort::models::cuda {

// --- types ---

// The upper half of a float32.
struct BFloat16 {
  uint16_t bits;
};
// The operand of one load or store: n words of 32 bits at an address that is a multiple of 4 * n.
template <int n>
struct alignas(4 * n) Words {
  uint32_t word[n];
};
struct Index3 {
  int x, y, z;
};

// --- the position of this thread ---

constexpr int kWarpThreads = 32;
LS_DEVICE int Thread();    // in its block
LS_DEVICE int Lane();      // in its warp
LS_DEVICE int Warp();      // of its block
LS_DEVICE Index3 Block();  // in the grid
LS_DEVICE Index3 Grid();   // number of blocks

// --- synchronisation and exchange ---

// A barrier for all threads of the block, which must call it at the same line. Earlier writes are visible afterwards.
LS_DEVICE void SyncBlock(int line = __builtin_LINE());
// The same for a warp.
LS_DEVICE void SyncWarp();
// Returns `mine` of lane `from`, or of lane Lane() ^ with. T has 4 or 8 bytes. Does not order memory accesses.
template <typename T>
LS_DEVICE T Shuffle(T mine, int from);
template <typename T>
LS_DEVICE T ShuffleXor(T mine, int with);

// --- memory ---

// The block's shared memory, LaunchShape::shared_bytes.
LS_DEVICE unsigned char* SharedMemory();
template <int n>
LS_DEVICE Words<n> Load(const void* from);  // global or shared
template <int n>
LS_DEVICE void Store(void* to, const Words<n>& words);
// Loads from global memory that is constant while the kernel runs.
template <int n>
LS_DEVICE Words<n> LoadConstant(const void* from);
// Begins to copy 16 bytes from global to shared memory; both addresses must be multiples of 16. If not `real`, writes
// zeros and reads nothing. The bytes are visible to this thread once it has waited for the group that it committed
// next.
LS_DEVICE void CopyAsync(void* shared, const void* global, bool real);
LS_DEVICE void CommitCopies();
// Waits until at most kLeft of this thread's latest groups are pending.
template <int kLeft>
LS_DEVICE void WaitForCopies();

// --- tensor cores; fragments as in the PTX manual, g = Lane() / 4, q = Lane() % 4 ---

// Four 8 x 8 matrices of 16-bit elements from shared memory: lanes 8m .. 8m+7 pass the addresses of the rows of matrix
// m, 16 bytes each. The lane receives rows 2q and 2q+1 of column g of each matrix.
LS_DEVICE void LoadMatricesTransposed(uint32_t (&matrices)[4], const void* row);
// d[16][8] += a[16][16] b[16][8], summed in float32. The elements of a and b are BFloat16.
//   a[0], a[1]: rows g, g+8 at k = 2q, 2q+1; a[2], a[3]: the same rows at k = 2q+8, 2q+9
//   b0: k = 2q, 2q+1 of column g; b1: k = 2q+8, 2q+9
//   d[0], d[1]: row g, columns 2q, 2q+1; d[2], d[3]: row g+8
LS_DEVICE void MultiplyMatrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
// d[16][8] += a[16][8] b[8][8] of TF32 numbers: float32 with the last 13 bits ignored.
//   a[0], a[1]: rows g, g+8 at k = q; a[2], a[3]: at k = q+4; b0: k = q of column g; b1: k = q+4; d as above
LS_DEVICE void MultiplyTf32Matrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

// --- numbers ---

LS_DEVICE float ToFloat(float value);
LS_DEVICE float ToFloat(BFloat16 value);
// Rounds to nearest, ties to even.
LS_DEVICE void Convert(float from, float& to);
LS_DEVICE void Convert(float from, BFloat16& to);
// Two elements in a word, the first in the lower half.
LS_DEVICE uint32_t PackBFloat16(float first, float second);
// Rounds to TF32: to nearest, ties away from zero.
LS_DEVICE uint32_t ToTf32(float value);
LS_DEVICE float FloatOf(uint32_t bits);
LS_DEVICE uint32_t BitsOf(float value);

LS_DEVICE float Add(float a, float b);
LS_DEVICE float Multiply(float a, float b);
LS_DEVICE float MultiplyAdd(float a, float b, float c);  // a * b + c, rounded once
LS_DEVICE float Reciprocal(float value);                 // to nearest
LS_DEVICE float SquareRoot(float value);                 // to nearest
LS_DEVICE float Larger(float a, float b);                // if one is NaN, the other
LS_DEVICE float Exp2(float value);                       // 2^value, to about 2 units in the last place; 0 for -infinity
LS_DEVICE float Erf(float value);

constexpr float kMinusInfinity = -__builtin_huge_valf();
constexpr float kLog2E = 1.4426950408889634f;

// Binds a kernel to its arguments. kKernel is an LS_KERNEL function with one LS_ARGUMENTS parameter.
template <auto kKernel, typename Arguments>
KernelCall MakeCall(const char* name, const LaunchShape& shape, const Arguments& arguments);

}  // namespace longshort::models::cuda

#ifdef __CUDACC__
#include "models/device/device_instructions.h"
#else
#include LONGSHORT_CUDA_EMULATION
#endif
