// The CUDA device, in builds that have it. Most machines that compile it have no GPU.

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"

namespace longshort::models::cuda_device_test {

TEST(CudaDevice, IsNamedWhereThereIsNone) {
  const auto device = MakeCudaDevice({.number = 1000});
  EXPECT_EQ(device.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(device.status().message()), ::testing::HasSubstr("there is no GPU cuda:1000 here"));
}

TEST(CudaDevice, CopiesAndReplaysWhereThereIsOne) {
  auto made = MakeCudaDevice({});
  if (!made.ok()) GTEST_SKIP() << made.status();
  GpuDevice& device = **made;
  void* const memory = device.Allocate(8, GpuMemoryUse::kKernels).value();
  auto* const host = static_cast<char*>(device.AllocatePinned(8).value());
  std::memset(host, 'a', 8);
  ASSERT_TRUE(device.Copy(memory, host, 8).ok());
  ASSERT_TRUE(device.Synchronize().ok());
  const auto graph = device.Capture([&] { return device.Copy(host, memory, 8); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::memset(host, 0, 8);
  ASSERT_TRUE(device.Replay(**graph).ok());
  ASSERT_TRUE(device.Wait(**device.Record()).ok());
  EXPECT_EQ(std::string(host, 8), "aaaaaaaa");
  device.Free(memory);
  device.FreePinned(host);
}

}  // namespace longshort::models::cuda_device_test
