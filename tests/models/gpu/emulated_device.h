// A GpuDevice on the processor, which watches over the rules of gpu_device.h:
//  - Device memory cannot be touched while no queued work runs (mprotect), unless LibTorch may use it, too.
//  - What is queued runs when somebody waits for it, as late as is allowed.
//  - New memory is NaN. A write beside an allocation is noticed: by the address sanitizer at once, else after the
//  kernel.
//  - Copies name device and pinned memory only.
//  - It fails when it is told to.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "models/gpu/gpu_device.h"
#include "tests/models/gpu/emulation/block.h"

namespace longshort::models {

struct EmulatedDeviceOptions {
  cuda::emulated::EmulationOptions emulation = {};
  int64_t memory_bytes = int64_t{256} << 20;
  int number = 0;
};

enum class DeviceFault {
  kOutOfMemory,  // this call has no memory
  kError,        // this call fails, and nothing else
  kLost,         // the device is lost; a call that queues work returns OK, and the work fails
};

class EmulatedDevice : public GpuDevice {
 public:
  // Runs of graphs so far.
  virtual int64_t replays() const = 0;
  // Calls of verbs that return a status, so far; those that a graph's body makes when it runs are none.
  virtual int64_t calls() const = 0;
  // How often kernels have run, by their name.
  virtual const std::map<std::string, int64_t>& kernels_run() const = 0;
  // The call after so many more fails.
  virtual void FailAfter(int64_t calls, DeviceFault fault) = 0;
  // The Replay after so many more fails.
  virtual void FailAfterReplays(int64_t replays, DeviceFault fault) = 0;
  // Pieces of memory that nobody has freed.
  virtual int64_t allocations() const = 0;
  // From the next kernel on.
  virtual void SetEmulation(const cuda::emulated::EmulationOptions& options) = 0;
};

std::unique_ptr<EmulatedDevice> MakeEmulatedDevice(const EmulatedDeviceOptions& options = {});

}  // namespace longshort::models
