// device.h for GPUs: each function is a PTX instruction for sm_80, or a CUDA intrinsic. Compiled by nvcc only.
#pragma once

#include <cuda_bf16.h>

#include "models/device/device.h"

namespace longshort::models::cuda {

LS_DEVICE int Thread() { return static_cast<int>(threadIdx.x); }
LS_DEVICE int Lane() { return static_cast<int>(threadIdx.x % kWarpThreads); }
LS_DEVICE int Warp() { return static_cast<int>(threadIdx.x / kWarpThreads); }
LS_DEVICE Index3 Block() {
  return {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z)};
}
LS_DEVICE Index3 Grid() {
  return {static_cast<int>(gridDim.x), static_cast<int>(gridDim.y), static_cast<int>(gridDim.z)};
}

LS_DEVICE void SyncBlock(int) { __syncthreads(); }
LS_DEVICE void SyncWarp() { __syncwarp(); }
template <typename T>
LS_DEVICE T Shuffle(T mine, int from) {
  return __shfl_sync(0xffffffffu, mine, from);
}
template <typename T>
LS_DEVICE T ShuffleXor(T mine, int with) {
  return __shfl_xor_sync(0xffffffffu, mine, with);
}

LS_DEVICE unsigned char* SharedMemory() {
  extern __shared__ __align__(128) unsigned char memory[];
  return memory;
}
LS_DEVICE uint32_t SharedAddress(const void* shared) { return static_cast<uint32_t>(__cvta_generic_to_shared(shared)); }

template <int n>
LS_DEVICE Words<n> Load(const void* from) {
  return *static_cast<const Words<n>*>(from);
}
template <int n>
LS_DEVICE void Store(void* to, const Words<n>& words) {
  *static_cast<Words<n>*>(to) = words;
}
template <int n>
LS_DEVICE Words<n> LoadConstant(const void* from) {
  static_assert(n == 1 || n == 2 || n == 4, "4, 8 or 16 bytes");
  Words<n> words;
  uint32_t(&w)[n] = words.word;
  if constexpr (n == 1) {
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(w[0]) : "l"(from));
  } else if constexpr (n == 2) {
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
  } else {
    asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from));
  }
  return words;
}

LS_DEVICE void CopyAsync(void* shared, const void* global, bool real) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(shared)), "l"(global),
               "r"(real ? 16 : 0)
               : "memory");
}
LS_DEVICE void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
LS_DEVICE void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

LS_DEVICE void LoadMatricesTransposed(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(SharedAddress(row))
               : "memory");
}
LS_DEVICE void MultiplyMatrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
LS_DEVICE void MultiplyTf32Matrices(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

LS_DEVICE float FloatOf(uint32_t bits) { return __uint_as_float(bits); }
LS_DEVICE uint32_t BitsOf(float value) { return __float_as_uint(value); }
LS_DEVICE float ToFloat(float value) { return value; }
LS_DEVICE float ToFloat(BFloat16 value) { return FloatOf(static_cast<uint32_t>(value.bits) << 16); }
LS_DEVICE void Convert(float from, float& to) { to = from; }
LS_DEVICE void Convert(float from, BFloat16& to) { to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(from)); }
LS_DEVICE uint32_t PackBFloat16(float first, float second) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}
LS_DEVICE uint32_t ToTf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

LS_DEVICE float Add(float a, float b) { return __fadd_rn(a, b); }
LS_DEVICE float Multiply(float a, float b) { return __fmul_rn(a, b); }
LS_DEVICE float MultiplyAdd(float a, float b, float c) { return __fmaf_rn(a, b, c); }
LS_DEVICE float Reciprocal(float value) { return __frcp_rn(value); }
LS_DEVICE float SquareRoot(float value) { return __fsqrt_rn(value); }
LS_DEVICE float Larger(float a, float b) { return fmaxf(a, b); }
LS_DEVICE float Exp2(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
LS_DEVICE float Erf(float value) { return erff(value); }

template <auto kKernel, typename Arguments>
KernelCall MakeCall(const char* name, const LaunchShape& shape, const Arguments& arguments) {
  KernelCall call;
  call.name = name;
  call.function = reinterpret_cast<const void*>(kKernel);
  call.shape = shape;
  call.SetArguments(arguments);
  return call;
}

}  // namespace longshort::models::cuda
