// Order of work, events and graphs of a device.

#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/gpu/device_arrays.h"
#include "tests/models/gpu/instruction_kernels.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda::device_test {

class TestedDevice : public ::testing::Test {
 protected:
  static std::vector<float> From(float first) {
    std::vector<float> numbers(96);
    for (float &number : numbers) number = first++;
    return numbers;
  }
  static std::vector<float> Reversed(std::vector<float> numbers) {
    std::reverse(numbers.begin(), numbers.end());
    return numbers;
  }

  std::unique_ptr<GpuDevice> device_ = MakeTestedDevice();
  DeviceArrays arrays_{*device_};
};

TEST_F(TestedDevice, AGraphReadsMemoryAgain) {
  constexpr size_t kBytes = 96 * sizeof(float);
  auto *const host = static_cast<float *>(device_->AllocatePinned(kBytes).value());
  float *const in = arrays_.Make<float>(96), *const of_warp = arrays_.Make<float>(96);
  float *const out = arrays_.Make<float>(96);
  const auto graph = device_->Capture([&]() -> absl::Status {
    absl::Status status = device_->Copy(in, host, kBytes);
    status.Update(device_->Launch(ReverseCall({in, out, of_warp})));
    return status;
  });
  ASSERT_TRUE(graph.ok()) << graph.status();

  const auto replay = [&](float first) {
    const std::vector<float> numbers = From(first);
    std::copy(numbers.begin(), numbers.end(), host);
    ASSERT_TRUE(device_->Replay(**graph).ok());
    auto event = device_->Record();
    ASSERT_TRUE(event.ok());
    ASSERT_TRUE(device_->Wait(**event).ok());
  };
  replay(1);
  EXPECT_EQ(arrays_.Get(out, 96), Reversed(From(1)));
  replay(1000);
  EXPECT_EQ(arrays_.Get(out, 96), Reversed(From(1000)));
  device_->FreePinned(host);
}

TEST_F(TestedDevice, HasNoMemoryForWhatIsTooMuch) {
  const absl::Status status = device_->Allocate(size_t{1} << 50, GpuMemoryUse::kKernels).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(device_->has_failed());
  // The device still works.
  float *const numbers = arrays_.Put(From(0));
  EXPECT_EQ(arrays_.Get(numbers, 2), (std::vector<float>{0, 1}));
}

TEST_F(TestedDevice, ACaptureThatFailsLeavesADeviceThatCaptures) {
  float *const in = arrays_.Put(From(0)), *const of_warp = arrays_.Make<float>(96);
  float *const out = arrays_.Make<float>(96);
  const auto reverse = [&] { return device_->Launch(ReverseCall({in, out, of_warp})); };
  EXPECT_FALSE(device_
                   ->Capture([&]() -> absl::Status {
                     absl::Status status = reverse();
                     status.Update(device_->Synchronize());  // not permitted
                     return status;
                   })
                   .ok());
  EXPECT_FALSE(device_->Capture([] { return absl::CancelledError("the body's own error"); }).ok());
  EXPECT_FALSE(device_->has_failed());
  const auto graph = device_->Capture(reverse);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(arrays_.Get(out, 96), ::testing::Each(::testing::IsNan())) << "nothing of the captures has run";
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_EQ(arrays_.Get(out, 96), Reversed(From(0)));
}

}  // namespace longshort::models::cuda::device_test
