// A test's arrays in a device's memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "models/device/gpu_device.h"

namespace longshort::models::cuda {

// Pages have the numbers from this one on where a test looks at their addresses: page 0 is more than 2^32 elements
// before the first page that there is.
inline constexpr int64_t kFarPage = int64_t{1} << 20;
// The address `count` elements before `array`, where nothing is.
template <typename T>
T* Before(T* array, int64_t count) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(array) - static_cast<uintptr_t>(count) * sizeof(T));
}

class DeviceArrays final {
 public:
  explicit DeviceArrays(GpuDevice& device) : device_(device) {}
  ~DeviceArrays() {
    for (void* const memory : memory_) device_.Free(memory);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  // An array of NaN, in integers -1. Fresh memory of a GPU has other values.
  template <typename T>
  T* Make(int64_t count) {
    const size_t bytes = std::max<int64_t>(count, 1) * sizeof(T);
    memory_.push_back(device_.Allocate(bytes, GpuMemoryUse::kKernels).value());
    Upload(memory_.back(), bytes, [bytes](void* pinned) { std::memset(pinned, 0xff, bytes); });
    return static_cast<T*>(memory_.back());
  }
  template <typename T>
  T* Put(const std::vector<T>& values) {
    T* const array = Make<T>(values.size());
    Set(array, values);
    return array;
  }
  template <typename T>
  void Set(T* array, const std::vector<T>& values) {
    const size_t bytes = values.size() * sizeof(T);
    if (bytes == 0) return;
    Upload(array, bytes, [&](void* pinned) { std::memcpy(pinned, values.data(), bytes); });
  }
  template <typename T>
  std::vector<T> Get(const T* array, int64_t count) {
    const size_t bytes = count * sizeof(T);
    std::vector<T> values(count);
    if (bytes == 0) return values;
    void* const pinned = device_.AllocatePinned(bytes).value();
    EXPECT_TRUE(device_.Copy(pinned, array, bytes).ok());
    const absl::Status status = device_.Synchronize();
    EXPECT_TRUE(status.ok()) << status;
    std::memcpy(values.data(), pinned, bytes);
    device_.FreePinned(pinned);
    return values;
  }
  void Launch(const KernelCall& call) {
    const absl::Status status = device_.Launch(call);
    EXPECT_TRUE(status.ok()) << status;
  }

 private:
  template <typename Write>
  void Upload(void* to, size_t bytes, const Write& write) {
    void* const pinned = device_.AllocatePinned(bytes).value();
    write(pinned);
    EXPECT_TRUE(device_.Copy(to, pinned, bytes).ok());
    EXPECT_TRUE(device_.Synchronize().ok());
    device_.FreePinned(pinned);
  }

  GpuDevice& device_;
  std::vector<void*> memory_;
};

}  // namespace longshort::models::cuda
