// Steps' numbers on their way to a GPU, in one copy each.
//
// Thread: the worker's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"

namespace longshort {

class StepUpload final {
 public:
  // The device must outlive it. Errors of its functions: those of GpuDevice.
  explicit StepUpload(GpuDevice& device) : device_(device) {}

  // Makes room for steps of so many numbers, which stay where they are then.
  absl::Status Reserve(int64_t numbers);
  // Queues the copy. The numbers may go at once. Waits only for the step before the last one.
  absl::Status Queue(absl::Span<const int64_t> numbers);

  // Of the step, on the device.
  int64_t* numbers() const { return memory_.as<int64_t>(); }
  size_t bytes() const { return memory_.bytes(); }

 private:
  // Host memory of one step.
  struct Staging {
    GpuMemory memory;                  // pinned
    std::unique_ptr<GpuEvent> copied;  // null: nothing has been
  };

  GpuDevice& device_;
  std::array<Staging, 2> stagings_;  // taken in turn
  int64_t turn_ = 0;
  GpuMemory memory_;
};

}  // namespace longshort
