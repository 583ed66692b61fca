// A step's numbers on their way to a GPU: the plan's, and which rows attend in which way, in one copy.
//
// Thread: the worker's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_memory.h"
#include "models/language_model/step_plan.h"

namespace longshort {

class StepUpload final {
 public:
  // The device must outlive it.
  explicit StepUpload(GpuDevice& device) : device_(device) {}

  // Queues the copy. The plan may go at once. Waits only for the step before the last one.
  // Errors: those of GpuDevice.
  absl::Status Queue(const StepPlan& plan);

  // Of the step, on the device:
  int64_t* numbers() const { return memory_.as<int64_t>(); }  // StepPlan::numbers, int64
  const int64_t* Of(const StepPlan::Array& array) const { return numbers() + array.first; }
  const int64_t* single_rows() const { return numbers() + first_single_; }
  const int64_t* tiles() const { return numbers() + first_single_ + single_count_; }
  int64_t single_count() const { return single_count_; }
  int64_t tile_count() const { return tile_count_; }

 private:
  // Host memory of one step.
  struct Staging {
    GpuMemory memory;                  // pinned
    std::unique_ptr<GpuEvent> copied;  // null: nothing has been
  };

  // Makes room for so many numbers, here and on the device.
  absl::Status Grow(Staging& staging, int64_t numbers);

  GpuDevice& device_;
  std::array<Staging, 2> stagings_;  // taken in turn
  int64_t turn_ = 0;
  GpuMemory memory_;
  int64_t first_single_ = 0, single_count_ = 0, tile_count_ = 0;
};

}  // namespace longshort
