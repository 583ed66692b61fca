// LibTorch's memory in tests belongs to streams, as on a GPU, and kernels on an emulated device get their own stream's.

#include "tests/models/device/library_streams.h"

#include <cmath>
#include <memory>
#include <string>
#include <thread>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/ops/rows/rows.h"
#include "tests/base/status_matchers.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::library_streams_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LibraryStreamsTest : public ::testing::Test {
 protected:
  ~LibraryStreamsTest() override { streams_.SetCurrent(LibraryStreams::kDefault); }

  std::unique_ptr<EmulatedDevice> Open() { return MakeEmulatedDevice({.library = &streams_}); }
  static absl::Status Launch(GpuDevice& device, const at::Tensor& rows) {
    absl::Status status =
        device.Launch(cuda::ActivateRowsCall({.row = cuda::ElementType::kFloat,
                                              .activation = cuda::RowActivation::kRelu,
                                              .rows = {.data = rows.mutable_data_ptr(), .stride = rows.size(1)},
                                              .bias = nullptr,
                                              .count = rows.size(0),
                                              .width = static_cast<int>(rows.size(1))}));
    status.Update(device.BeforeLibraryCalls());  // before the rows are freed
    return status;
  }

  LibraryStreams& streams_ = TestedLibraryStreams();
};

#if !defined(__SANITIZE_ADDRESS__)  // which reports the reads of freed memory
TEST_F(LibraryStreamsTest, AFreedBlockIsNaNAndTheNextOneOfItsStreamOnly) {
  const int64_t mine = streams_.Open(), other = streams_.Open();
  streams_.SetCurrent(mine);
  const float* freed = at::ones({100}).const_data_ptr<float>();
  EXPECT_TRUE(std::isnan(freed[0]) && std::isnan(freed[99]));
  EXPECT_THAT(streams_.Misuse(freed, mine), HasSubstr("freed"));
  streams_.SetCurrent(other);
  const at::Tensor of_other = at::empty({100});
  EXPECT_NE(of_other.const_data_ptr(), freed);
  streams_.SetCurrent(mine);
  const at::Tensor next = at::empty({90});
  EXPECT_EQ(next.const_data_ptr(), freed);
  EXPECT_THAT(streams_.Misuse(freed, mine), IsEmpty());
  streams_.Close(mine);
  streams_.Close(other);
}
#endif

TEST_F(LibraryStreamsTest, AKernelGetsTensorsOfItsOwnStreamAndOlderOnes) {
  const at::Tensor weights = at::ones({2, 8});
  const std::unique_ptr<EmulatedDevice> first = Open();
  const at::Tensor of_first = at::ones({2, 8});
  const std::unique_ptr<EmulatedDevice> second = Open();
  const at::Tensor of_second = at::ones({2, 8});
  for (const at::Tensor& rows : {weights, of_first, of_second}) EXPECT_THAT(Launch(*second, rows), IsOk());
  EXPECT_THAT(Launch(*first, of_first), IsOk());
  EXPECT_THAT(Launch(*first, of_second).ToString(), HasSubstr("kernel Activate gets a tensor of stream"));
}

// A new thread's current stream is the default one.
TEST_F(LibraryStreamsTest, AThreadUsesADevicesStreamOnceItIsCurrentThere) {
  const std::unique_ptr<EmulatedDevice> device = Open();
  std::thread([&] {
    EXPECT_THAT(Launch(*device, at::ones({2, 8})).ToString(), HasSubstr("gets a tensor of stream 0 on stream"));
    ASSERT_THAT(device->BeforeLibraryCalls(), IsOk());
    EXPECT_THAT(Launch(*device, at::ones({2, 8})), IsOk());
  }).join();
}

TEST_F(LibraryStreamsTest, AReplayLeavesTheCurrentStreamAsItIs) {
  const std::unique_ptr<EmulatedDevice> device = Open();
  const auto graph = device->Capture([&] { return Launch(*device, at::ones({2, 8})); });
  ASSERT_THAT(graph, IsOk());
  std::thread([&] {
    ASSERT_THAT(device->Replay(**graph), IsOk());
    ASSERT_THAT(device->Synchronize(), IsOk());
    EXPECT_FALSE(Launch(*device, at::ones({2, 8})).ok());
  }).join();
}

}  // namespace longshort::models::library_streams_test
