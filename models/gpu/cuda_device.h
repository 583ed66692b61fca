// GpuDevice by CUDA's runtime. Compiled where there is a CUDA toolkit (LONGSHORT_CUDA).
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/gpu/gpu_device.h"

namespace longshort::models {

struct CudaDeviceOptions {
  int number = 0;
  // The cudaStream_t that work is queued on, which must outlive the device: LibTorch's current one where its calls are
  // to be in order with kernels. Null: a stream of its own.
  void* stream = nullptr;
  // Called by BeforeLibraryCalls: makes the stream the calling thread's current one, where threads take turns.
  std::function<void()> before_library_calls = [] {};
  // Called around a capture: for LibTorch's allocator, which must not give memory of a graph to anybody else.
  std::function<void()> before_capture = [] {};
  std::function<void()> after_capture = [] {};
};

// Errors: UNAVAILABLE if there is no driver or no such GPU.
absl::StatusOr<std::unique_ptr<GpuDevice>> MakeCudaDevice(const CudaDeviceOptions& options);

}  // namespace longshort::models
