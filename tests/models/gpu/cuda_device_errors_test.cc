// How the CUDA device handles errors of CUDA's runtime, which is a false one.

#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "tests/base/status_matchers.h"
#include "tests/models/gpu/false_cuda.h"

namespace longshort::models::cuda_device_errors_test {

using ::testing::HasSubstr;

constexpr size_t kBytes = 1 << 20;

class CudaDeviceErrors : public ::testing::Test {
 protected:
  CudaDeviceErrors() {
    cuda_ = {};
    std::strcpy(cuda_.properties.name, "false chip");
    cuda_.properties.major = 8;
    cuda_.properties.minor = 9;
    cuda_.properties.sharedMemPerBlockOptin = 99 * 1024;
    device_ = MakeCudaDevice({.free_cached_memory = [this] {
                ++cache_emptied_;
                cuda_.free_bytes += cached_bytes_;
              }}).value();
  }

  FalseCuda& cuda_ = TheFalseCuda();
  int cache_emptied_ = 0;
  int64_t cached_bytes_ = 0;
  std::unique_ptr<GpuDevice> device_;
};

TEST_F(CudaDeviceErrors, AnErrorOfACallIsNoLossIfTheContextAnswers) {
  for (const cudaError_t error : {cudaErrorUnknown, cudaErrorInvalidValue, cudaErrorNoKernelImageForDevice}) {
    cuda_.errors = {{"cudaStreamSynchronize", error}};
    EXPECT_EQ(device_->Synchronize().code(), absl::StatusCode::kInternal);
    EXPECT_FALSE(device_->has_failed());
  }
  cuda_.errors = {};
  EXPECT_THAT(device_->Synchronize(), IsOk());
}

// cudaErrorDevicesUnavailable is 46, and cudaErrorUnknown 999: a GPU that fell off the bus has them.
TEST_F(CudaDeviceErrors, AnyErrorIsALossIfTheContextDoesNotAnswer) {
  for (const cudaError_t error : {cudaErrorUnknown, cudaErrorDevicesUnavailable, cudaErrorNoDevice,
                                  cudaErrorIllegalAddress, static_cast<cudaError_t>(12345)}) {
    const std::unique_ptr<GpuDevice> device = MakeCudaDevice({}).value();
    cuda_.sticky = error;
    EXPECT_EQ(device->Synchronize().code(), absl::StatusCode::kInternal);
    EXPECT_TRUE(device->has_failed()) << error;
    cuda_.sticky = cudaSuccess;
    EXPECT_TRUE(device->has_failed()) << "permanently";
  }
}

TEST_F(CudaDeviceErrors, ACaptureIsNotAskedBeforeItHasEnded) {
  const auto graph = device_->Capture([&]() -> absl::Status {
    EXPECT_FALSE(device_->has_failed());
    return absl::CancelledError("the body's own error");
  });
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cuda_.calls["cudaMemGetInfo"], 0);
  EXPECT_FALSE(device_->has_failed());
  EXPECT_EQ(cuda_.calls["cudaMemGetInfo"], 1);
}

TEST_F(CudaDeviceErrors, MemoryThatDoesNotFitIsTriedAgainOnceWithoutLibTorchsCache) {
  cuda_.free_bytes = kBytes / 2;
  EXPECT_EQ(device_->Allocate(kBytes, GpuMemoryUse::kKernels).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cache_emptied_, 1);
  EXPECT_EQ(cuda_.calls["cudaMalloc"], 2);
  cached_bytes_ = kBytes / 2;
  const auto memory = device_->Allocate(kBytes, GpuMemoryUse::kKernels);
  ASSERT_THAT(memory, IsOk());
  EXPECT_EQ(cache_emptied_, 2);
  device_->Free(*memory);
  EXPECT_FALSE(device_->has_failed());
}

TEST_F(CudaDeviceErrors, AKernelThatNeedsMoreSharedMemoryThanTheChipHasIsRefused) {
  KernelCall call;
  call.name = "Wide";
  call.shape.shared_bytes = 99 * 1024;
  EXPECT_THAT(device_->Launch(call), IsOk());
  ++call.shape.shared_bytes;
  EXPECT_THAT(device_->Launch(call).ToString(),
              HasSubstr("UNIMPLEMENTED: kernel Wide needs 101377 bytes of shared memory for a block at this model's "
                        "widths; false chip allows 101376"));
  EXPECT_EQ(cuda_.calls["cudaLaunchKernelExC"], 1);
}

TEST(CheckChip, NamesChipsThatLackTheKernelsInstructions) {
  EXPECT_THAT(CheckChip({.name = "Tesla T4", .major = 7, .minor = 5}).ToString(),
              HasSubstr("UNIMPLEMENTED: Tesla T4 has compute capability 7.5; at least 8.0 is needed"));
  for (const int major : {8, 9, 10, 12}) EXPECT_THAT(CheckChip({.name = "", .major = major}), IsOk());
}

}  // namespace longshort::models::cuda_device_errors_test
