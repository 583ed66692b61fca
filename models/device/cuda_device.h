// GpuDevice on the CUDA runtime. Compiled only with a CUDA toolkit (LONGSHORT_CUDA).
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/device/gpu_device.h"

namespace longshort::models {

struct CudaDeviceOptions {
  int number = 0;
  // The cudaStream_t for queued work; it must outlive the device. Pass LibTorch's current stream if its calls must be
  // in order with kernels. Null: the device creates its own stream.
  void* stream = nullptr;
  // Called by BeforeLibraryCalls. Makes the stream current in the calling thread, for devices that several threads use
  // in turn.
  std::function<void()> before_library_calls = [] {};
  // Called around a capture, so that LibTorch's allocator reserves the graph's memory.
  std::function<void()> before_capture = [] {};
  std::function<void()> after_capture = [] {};
};

// Errors: UNAVAILABLE if there is no driver or no such GPU.
absl::StatusOr<std::unique_ptr<GpuDevice>> MakeCudaDevice(const CudaDeviceOptions& options);

}  // namespace longshort::models
