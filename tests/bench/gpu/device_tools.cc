#include "tests/bench/gpu/device_tools.h"

#if defined(LONGSHORT_CUDA_GPU)
#include "c10/cuda/CUDAException.h"
#include "cuda_profiler_api.h"
#include "cuda_runtime_api.h"
#endif

namespace longshort {

int64_t UsedMemory([[maybe_unused]] const GoldenDevice& device) {
#if defined(LONGSHORT_CUDA_GPU)
  if (device.devices.front().kind == models::DeviceKind::kCuda) {
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaSetDevice(device.devices.front().index));
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(total - free);
  }
#endif
  return 0;
}

void StartProfiling([[maybe_unused]] const GoldenDevice& device) {
#if defined(LONGSHORT_CUDA_GPU)
  if (device.devices.front().kind == models::DeviceKind::kCuda) C10_CUDA_CHECK(cudaProfilerStart());
#endif
}

}  // namespace longshort
