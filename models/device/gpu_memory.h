// Owns a piece of GPU memory, or of pinned host memory.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "models/device/gpu_device.h"

namespace longshort::models {

// Empty by default. The device must outlive it, and no queued work may use it when it is freed.
class GpuMemory final {
 public:
  GpuMemory() = default;
  GpuMemory(GpuMemory&& other) noexcept { *this = std::move(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }
  ~GpuMemory() {
    if (memory_ == nullptr) return;
    if (pinned_) {
      device_->FreePinned(memory_);
    } else {
      device_->Free(memory_);
    }
  }

  // REQUIRES: bytes > 0. Errors: those of GpuDevice.
  static absl::StatusOr<GpuMemory> OnDevice(GpuDevice& device, size_t bytes, GpuMemoryUse use) {
    LS_ASSIGN_OR_RETURN(void* const memory, device.Allocate(bytes, use));
    return GpuMemory(device, memory, bytes, /*pinned=*/false);
  }
  static absl::StatusOr<GpuMemory> Pinned(GpuDevice& device, size_t bytes) {
    LS_ASSIGN_OR_RETURN(void* const memory, device.AllocatePinned(bytes));
    return GpuMemory(device, memory, bytes, /*pinned=*/true);
  }

  // Null if empty.
  char* data() const { return static_cast<char*>(memory_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  size_t bytes() const { return bytes_; }

 private:
  GpuMemory(GpuDevice& device, void* memory, size_t bytes, bool pinned)
      : device_(&device), memory_(memory), bytes_(bytes), pinned_(pinned) {}

  GpuDevice* device_ = nullptr;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  bool pinned_ = false;
};

}  // namespace longshort::models
