// The emulated device: it behaves as gpu_device.h specifies, and detects violations of its rules.

#include "tests/models/gpu/emulated_device.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/device.h"

namespace longshort::models::emulated_device_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Numbers {
  float* numbers;
  float value;
  int count;
};
LS_KERNEL(32) void AddTo(LS_ARGUMENTS Numbers arguments) {
  if (cuda::Thread() < arguments.count) arguments.numbers[cuda::Thread()] += arguments.value;
}
LS_KERNEL(32) void Leave(LS_ARGUMENTS Numbers) {
  if (cuda::Lane() == 0) cuda::SyncBlock();
  cuda::SyncWarp();
}
KernelCall AddCall(float* numbers, float value, int count = 4) {
  return cuda::MakeCall<AddTo>("AddTo", LaunchShape{}, Numbers{numbers, value, count});
}

class EmulatedDevices : public ::testing::Test {
 protected:
  float* Floats(int count, GpuMemoryUse use = GpuMemoryUse::kKernels) {
    return static_cast<float*>(device_->Allocate(count * sizeof(float), use).value());
  }
  float* Pinned(std::vector<float> values) {
    auto* const memory = static_cast<float*>(device_->AllocatePinned(values.size() * sizeof(float)).value());
    std::memcpy(memory, values.data(), values.size() * sizeof(float));
    return memory;
  }
  std::vector<float> Read(const float* numbers, int count = 4) {
    float* const host = Pinned(std::vector<float>(count));
    EXPECT_TRUE(device_->Copy(host, numbers, count * sizeof(float)).ok());
    EXPECT_TRUE(device_->Synchronize().ok());
    std::vector<float> values(host, host + count);
    device_->FreePinned(host);
    return values;
  }
  static std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

  std::unique_ptr<EmulatedDevice> device_ = MakeEmulatedDevice({.memory_bytes = 1 << 20});
};

TEST_F(EmulatedDevices, WorkRunsInItsOrder) {
  float* const numbers = Floats(4);
  float* const host = Pinned({1, 2, 3, 4});
  ASSERT_TRUE(device_->Copy(numbers, host, 16).ok());
  ASSERT_TRUE(device_->Launch(AddCall(numbers, 10)).ok());
  ASSERT_TRUE(device_->Copy(numbers + 1, numbers + 2, 4).ok());
  ASSERT_TRUE(device_->Launch(AddCall(numbers, 100)).ok());
  EXPECT_THAT(Read(numbers), ElementsAre(111, 113, 113, 114));
}

TEST_F(EmulatedDevices, QueuedWorkReadsTheHostAsLateAsItMay) {
  float* const numbers = Floats(4);
  float* const host = Pinned({1, 2, 3, 4});
  ASSERT_TRUE(device_->Copy(numbers, host, 16).ok());
  host[0] = 5;  // too early
  EXPECT_THAT(Read(numbers), ElementsAre(5, 2, 3, 4));
  host[0] = 6;
  EXPECT_THAT(Read(numbers), ElementsAre(5, 2, 3, 4));
}

TEST_F(EmulatedDevices, AnEventIsAllThatWasQueuedBeforeIt) {
  float* const numbers = Floats(1);
  float* const host = Pinned({1, 0, 0});
  ASSERT_TRUE(device_->Copy(numbers, host, 4).ok());
  ASSERT_TRUE(device_->Copy(host + 1, numbers, 4).ok());
  const auto event = device_->Record();
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE(device_->Copy(host + 2, numbers, 4).ok());
  EXPECT_EQ(host[1], 0);
  ASSERT_TRUE(device_->Wait(**event).ok());
  EXPECT_EQ(host[1], 1);
  EXPECT_EQ(host[2], 0);
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(host[2], 1);
}

TEST_F(EmulatedDevices, NewMemoryIsNaN) {
  EXPECT_THAT(Read(Floats(4)), ::testing::Each(::testing::IsNan()));
  EXPECT_TRUE(std::isnan(*static_cast<float*>(device_->AllocatePinned(4).value())));
}

TEST_F(EmulatedDevices, TheHostCannotTouchDeviceMemory) {
  float* const numbers = Floats(4);
  ASSERT_TRUE(device_->Launch(AddCall(numbers, 1)).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_DEATH(*static_cast<volatile float*>(numbers) = 1, "");
  float* const shared = Floats(4, GpuMemoryUse::kLibraryToo);
  shared[3] = 7;
  EXPECT_EQ(shared[3], 7);
}

TEST_F(EmulatedDevices, TheLibraryComesAfterWhatIsQueued) {
  float* const numbers = Floats(1, GpuMemoryUse::kLibraryToo);
  numbers[0] = 1;
  ASSERT_TRUE(device_->Launch(AddCall(numbers, 1, 1)).ok());
  EXPECT_EQ(numbers[0], 1);
  ASSERT_TRUE(device_->BeforeLibraryCalls().ok());
  EXPECT_EQ(numbers[0], 2);
}

TEST_F(EmulatedDevices, AWritePastAPieceIsNoticed) {
  float* const numbers = Floats(4);
  Floats(4);
  ASSERT_TRUE(device_->Launch(AddCall(numbers, 1, 5)).ok());
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(device_->Synchronize().IgnoreError(), "use-after-poison");
#else
  EXPECT_THAT(MessageOf(device_->Synchronize()), HasSubstr("AddTo: a write 0 bytes past the end of a piece of 16"));
#endif
}

TEST_F(EmulatedDevices, OnlyDeviceAndPinnedMemoryIsCopied) {
  float* const numbers = Floats(4);
  float other[4] = {};
  EXPECT_THAT(MessageOf(device_->Copy(numbers, other, 16)), HasSubstr("from: 16 bytes at"));
  EXPECT_THAT(MessageOf(device_->Copy(other, numbers, 16)), HasSubstr("neither device memory nor pinned"));
  EXPECT_THAT(MessageOf(device_->Copy(numbers, numbers, 17)), HasSubstr("to: 17 bytes at"));
}

TEST_F(EmulatedDevices, MemoryEndsAndComesBack) {
  const auto first = device_->Allocate(600 << 10, GpuMemoryUse::kKernels);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(device_->Allocate(600 << 10, GpuMemoryUse::kLibraryToo).status().code(),
            absl::StatusCode::kResourceExhausted);
  const int64_t free = device_->free_bytes();
  EXPECT_LT(free, 424 << 10);
  device_->Free(*first);
  EXPECT_EQ(device_->allocations(), 0);
  EXPECT_EQ(device_->free_bytes(), 1 << 20);
  EXPECT_TRUE(device_->Allocate(600 << 10, GpuMemoryUse::kLibraryToo).ok());
}

TEST_F(EmulatedDevices, AFaultyKernelLosesTheDevice) {
  ASSERT_TRUE(device_->Launch(cuda::MakeCall<Leave>("Leave", LaunchShape{}, Numbers{})).ok());
  EXPECT_FALSE(device_->has_failed());
  EXPECT_THAT(MessageOf(device_->Synchronize()), HasSubstr("kernel Leave"));
  EXPECT_TRUE(device_->has_failed());
  EXPECT_THAT(MessageOf(device_->Synchronize()), HasSubstr("kernel Leave"));
  EXPECT_FALSE(device_->Allocate(4, GpuMemoryUse::kKernels).ok());
}

// --- graphs ---

TEST_F(EmulatedDevices, AGraphKeepsArgumentsAndReadsMemoryAgain) {
  float* const numbers = Floats(1);
  float* const source = Pinned({1});
  const auto graph = device_->Capture([&]() -> absl::Status {
    absl::Status status = device_->Copy(numbers, source, 4);
    status.Update(device_->Launch(AddCall(numbers, 10, 1)));
    return status;
  });
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(device_->replays(), 0);
  source[0] = 2;
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_THAT(Read(numbers, 1), ElementsAre(12));
  source[0] = 3;
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_THAT(Read(numbers, 1), ElementsAre(13));
  EXPECT_EQ(device_->replays(), 2);
}

// Kernel, library, kernel: as a layer does.
TEST_F(EmulatedDevices, TheLibrarysCallsAreAmongAGraphsWork) {
  float* const numbers = Floats(1, GpuMemoryUse::kLibraryToo);
  const auto graph = device_->Capture([&]() -> absl::Status {
    absl::Status status = device_->Launch(AddCall(numbers, 1, 1));
    status.Update(device_->BeforeLibraryCalls());
    numbers[0] *= 10;  // LibTorch
    status.Update(device_->Launch(AddCall(numbers, 1, 1)));
    return status;
  });
  ASSERT_TRUE(graph.ok());
  numbers[0] = 4;
  ASSERT_TRUE(device_->Replay(**graph).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(numbers[0], 51);
}

TEST_F(EmulatedDevices, AGraphsKernelsFindTensorsWhereTheyAreInEveryRun) {
  float* const numbers = Floats(1, GpuMemoryUse::kLibraryToo);
  std::vector<std::unique_ptr<float>> tensors;  // each is somewhere else
  const auto graph = device_->Capture([&]() -> absl::Status {
    tensors.push_back(std::make_unique<float>(3));
    absl::Status status = device_->Launch(AddCall(tensors.back().get(), 1, 1));
    status.Update(device_->BeforeLibraryCalls());
    numbers[0] = *tensors.back();
    return status;
  });
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(numbers[0], 3);
  ASSERT_TRUE(device_->Replay(**graph).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(numbers[0], 4);
}

TEST_F(EmulatedDevices, ABodyThatChangesAnArgumentIsAnError) {
  float* const numbers = Floats(2);
  const KernelCall call = AddCall(numbers, 1, 1);
  const auto refusal = [&](const KernelCall& other) {
    device_ = MakeEmulatedDevice({.memory_bytes = 1 << 20});  // the one before is lost
    KernelCall launched = call;
    const auto graph = device_->Capture([&] { return device_->Launch(launched); });
    EXPECT_TRUE(graph.ok());
    launched = other;
    EXPECT_TRUE(device_->Replay(**graph).ok());
    return MessageOf(device_->Synchronize());
  };
  EXPECT_THAT(refusal(AddCall(numbers, 2, 1)), HasSubstr("the body of a graph launches AddTo with the word"));
  EXPECT_THAT(refusal(AddCall(numbers, 1, 2)), HasSubstr("at byte 8 of its arguments"));
  KernelCall wider = call;
  wider.shape.grid.x = 2;
  EXPECT_THAT(refusal(wider), HasSubstr("AddTo with this shape"));
}

TEST_F(EmulatedDevices, ACaptureOnlyQueues) {
  EXPECT_THAT(MessageOf(device_->Capture([&] { return device_->Synchronize(); }).status()),
              HasSubstr("Synchronize within a capture"));
  EXPECT_THAT(
      MessageOf(device_->Capture([&] { return device_->Allocate(4, GpuMemoryUse::kKernels).status(); }).status()),
      HasSubstr("Allocate within a capture"));
}

TEST_F(EmulatedDevices, ABodyThatQueuesSomethingElseIsAnError) {
  float* const numbers = Floats(1);
  bool second = false;
  const auto graph = device_->Capture(
      [&] { return second ? device_->Copy(numbers, numbers, 4) : device_->Launch(AddCall(numbers, 1, 1)); });
  ASSERT_TRUE(graph.ok());
  second = true;
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_THAT(MessageOf(device_->Synchronize()), HasSubstr("the body of a graph queues Copy as its work 0"));
}

// --- faults ---

TEST_F(EmulatedDevices, TheCallsOfABodyThatRunsAreNone) {
  float* const numbers = Floats(1);
  ASSERT_TRUE(device_->Copy(numbers, Pinned({0}), 4).ok());
  const auto graph = device_->Capture([&] { return device_->Launch(AddCall(numbers, 1, 1)); });
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(device_->Replay(**graph).ok());
  const int64_t calls = device_->calls();
  device_->FailAfter(1, DeviceFault::kError);
  ASSERT_TRUE(device_->Synchronize().ok());
  EXPECT_EQ(device_->calls(), calls + 1);
  EXPECT_EQ(device_->Synchronize().code(), absl::StatusCode::kInternal);
}

TEST_F(EmulatedDevices, FailsAtTheRequestedCall) {
  float* const numbers = Floats(4);
  ASSERT_TRUE(device_->Copy(numbers, Pinned({0, 0, 0, 0}), 16).ok());
  const int64_t calls = device_->calls();
  device_->FailAfter(1, DeviceFault::kOutOfMemory);
  EXPECT_TRUE(device_->Launch(AddCall(numbers, 1)).ok());
  EXPECT_EQ(device_->Launch(AddCall(numbers, 1)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device_->calls(), calls + 2);
  device_->FailAfter(0, DeviceFault::kError);
  EXPECT_EQ(device_->Launch(AddCall(numbers, 1)).code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(device_->has_failed());
  EXPECT_THAT(Read(numbers), ElementsAre(1, 1, 1, 1));
}

TEST_F(EmulatedDevices, FailsAtTheRequestedReplay) {
  float* const numbers = Floats(1);
  ASSERT_TRUE(device_->Copy(numbers, Pinned({0}), 4).ok());
  const auto graph = device_->Capture([&] { return device_->Launch(AddCall(numbers, 1, 1)); });
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(device_->Replay(**graph).ok());
  device_->FailAfterReplays(1, DeviceFault::kError);
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_EQ(device_->Replay(**graph).code(), absl::StatusCode::kInternal);
  ASSERT_TRUE(device_->Replay(**graph).ok());
  EXPECT_THAT(Read(numbers, 1), ElementsAre(3));
}

TEST_F(EmulatedDevices, ALostDeviceIsSeenOnlyWhenWorkIsWaitedFor) {
  float* const numbers = Floats(4);
  device_->FailAfter(0, DeviceFault::kLost);
  EXPECT_TRUE(device_->Launch(AddCall(numbers, 1)).ok());
  EXPECT_TRUE(device_->Launch(AddCall(numbers, 1)).ok());
  EXPECT_FALSE(device_->has_failed());
  EXPECT_THAT(MessageOf(device_->Synchronize()), HasSubstr("injected loss at AddTo"));
  EXPECT_TRUE(device_->has_failed());
  EXPECT_FALSE(device_->Launch(AddCall(numbers, 1)).ok());
}

TEST_F(EmulatedDevices, AnyVerbCanLoseTheDevice) {
  float* const numbers = Floats(4);
  device_->FailAfter(0, DeviceFault::kLost);
  EXPECT_FALSE(device_->Record().ok());
  EXPECT_TRUE(device_->has_failed());
  device_->Free(numbers);  // still right
  EXPECT_EQ(device_->allocations(), 0);
}

}  // namespace longshort::models::emulated_device_test
