#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_memory.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::gpu_upload_test {

using ::testing::ElementsAreArray;

// Uploads numbers without waiting in between. A copy queued after each upload keeps it on the device.
class GpuUploadTest : public ::testing::Test {
 protected:
  void Upload(const std::vector<int>& numbers) {
    const size_t bytes = numbers.size() * sizeof(int);
    std::copy(numbers.begin(), numbers.end(), reinterpret_cast<int*>(upload_.Begin(bytes).value()));
    ASSERT_TRUE(upload_.Queue().ok());
    kept_.push_back(GpuMemory::Pinned(*device_, bytes).value());
    ASSERT_TRUE(device_->Copy(kept_.back().data(), upload_.as<int>(), bytes).ok());
    expected_.push_back(numbers);
  }
  void ExpectAll() {
    ASSERT_TRUE(device_->Synchronize().ok());
    for (size_t i = 0; i < kept_.size(); ++i) {
      const int* const first = kept_[i].as<int>();
      EXPECT_THAT(std::vector<int>(first, first + expected_[i].size()), ElementsAreArray(expected_[i])) << i;
    }
  }

  const std::unique_ptr<EmulatedDevice> device_ = MakeEmulatedDevice({.memory_bytes = 1 << 20});
  GpuUpload upload_{*device_};
  std::vector<GpuMemory> kept_;
  std::vector<std::vector<int>> expected_;
};

TEST_F(GpuUploadTest, HostMemoryIsWrittenAgainWhenItWasCopied) {
  for (int i = 0; i < 5; ++i) Upload({i, -i});
  ExpectAll();
}

TEST_F(GpuUploadTest, GrowsWithWhatIsBrought) {
  for (const int count : {1, 100, 3, 1000, 1000, 2}) Upload(std::vector<int>(count, count));
  ExpectAll();
  // Two pieces of host memory, one of device memory, and the test's own.
  EXPECT_EQ(device_->allocations(), 3 + 6);
}

// The device has 1 MiB, which does not fit the smaller and the larger piece at once.
TEST_F(GpuUploadTest, WhatGrowsIsFreedBefore) {
  Upload(std::vector<int>(100'000, 1));
  const absl::Status status = upload_.Reserve(800'000);
  EXPECT_TRUE(status.ok()) << status;
  ExpectAll();
}

}  // namespace longshort::models::gpu_upload_test
