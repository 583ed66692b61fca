// Memory of a GPU, and uploads to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "models/device/gpu_device.h"

namespace longshort::models {

// Owns a piece of GPU memory, or of pinned host memory. Empty by default. The device must outlive it, and no queued
// work may use it when it is freed.
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

// Repeated uploads to a GPU: the caller writes to pinned memory, which is copied asynchronously.
// Thread: the worker's.
class GpuUpload final {
 public:
  // The device must outlive it.
  explicit GpuUpload(GpuDevice& device) : device_(device) {}

  // Reserves device memory for uploads of up to `bytes`. All uploads that are no larger have the same device address.
  // Errors: those of GpuDevice.
  absl::Status Reserve(size_t bytes) {
    if (memory_.bytes() >= bytes) return absl::OkStatus();
    LS_RETURN_IF_ERROR(device_.Synchronize());
    memory_ = {};
    LS_ASSIGN_OR_RETURN(memory_, GpuMemory::OnDevice(device_, bytes, GpuMemoryUse::kLibraryToo));
    return absl::OkStatus();
  }

  // Returns host memory for the next upload of `bytes` >= 1. Waits only for the upload before the last one.
  // Errors: those of GpuDevice.
  absl::StatusOr<char*> Begin(size_t bytes) {
    Staging& staging = stagings_[++turn_ % stagings_.size()];
    if (staging.copied != nullptr) LS_RETURN_IF_ERROR(device_.Wait(*staging.copied));
    if (staging.memory.bytes() < bytes) {
      LS_ASSIGN_OR_RETURN(staging.memory, GpuMemory::Pinned(device_, Larger(staging.memory, bytes)));
    }
    bytes_ = bytes;
    return staging.memory.data();
  }
  // Queues the copy of the data written since Begin. REQUIRES: Begin was the last call.
  // Errors: those of GpuDevice.
  absl::Status Queue() {
    if (memory_.bytes() < bytes_) LS_RETURN_IF_ERROR(Reserve(Larger(memory_, bytes_)));
    Staging& staging = stagings_[turn_ % stagings_.size()];
    LS_RETURN_IF_ERROR(device_.Copy(memory_.data(), staging.memory.data(), bytes_));
    LS_ASSIGN_OR_RETURN(staging.copied, device_.Record());
    return absl::OkStatus();
  }

  // Device address of the latest upload. Valid until the next Queue.
  template <typename T>
  T* as() const {
    return memory_.as<T>();
  }

 private:
  // Host memory of one upload.
  struct Staging {
    GpuMemory memory;                  // pinned
    std::unique_ptr<GpuEvent> copied;  // null: no copy was queued
  };

  static size_t Larger(const GpuMemory& memory, size_t bytes) { return std::max(bytes, 2 * memory.bytes()); }

  GpuDevice& device_;
  std::array<Staging, 2> stagings_;  // taken in turn
  int64_t turn_ = 0;
  size_t bytes_ = 0;
  GpuMemory memory_;
};

}  // namespace longshort::models
