// A GpuDevice on the CPU that checks the rules of gpu_device.h:
//  - Access to device memory faults while no queued work runs (mprotect), unless LibTorch may use it, too.
//  - Queued work runs when a call waits for it, as late as the rules allow.
//  - New memory is NaN, or zeros if the environment has LONGSHORT_DEVICE_ZEROED.
//  - A write outside an allocation is detected: by the address sanitizer at once, else after the kernel.
//  - Copies may use device and pinned memory only.
//  - Kernels get LibTorch's memory of the device's own stream only, if the device knows LibTorch's streams.
//  - Events have a simulated time: the sum of what the works before them take.
//  - Tests can inject failures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "models/device/gpu_device.h"
#include "tests/models/gpu/emulation/block.h"

namespace longshort::models {

// LibTorch's streams (tests/models/device/library_streams.h). Thread-safe.
class LibraryStreams {
 public:
  static constexpr int64_t kDefault = 0;
  virtual ~LibraryStreams() = default;

  virtual int64_t Open() = 0;
  virtual void Close(int64_t stream) = 0;
  // Makes it the calling thread's current stream, and returns the previous one.
  virtual int64_t SetCurrent(int64_t stream) = 0;
  // Describes the memory at an address if a kernel on this stream must not get it; else empty.
  virtual std::string Misuse(const void* address, int64_t stream) const = 0;
};

inline constexpr int64_t kSharedBytesOfSmallChips = 99 * 1024;

struct EmulatedDeviceOptions {
  cuda::emulated::EmulationOptions emulation = {};
  int64_t memory_bytes = int64_t{256} << 20;
  int number = 0;
  // The chip's: an A100's. Chips of 8.6, 8.9 and 12.0 have less shared memory.
  int major = 8, minor = 0;
  int64_t max_shared_bytes = cuda::emulated::kMaxSharedBytes;
  // Must outlive the device, whose stream becomes the current one of the thread that opens it. Null: the device does
  // not check LibTorch's memory.
  LibraryStreams* library = nullptr;
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
  // Calls so far of methods that return a status, without those of a graph's body during a run.
  virtual int64_t calls() const = 0;
  // The number of runs of each kernel, by name.
  virtual const std::map<std::string, int64_t>& kernels_run() const = 0;
  // The call after this many more calls fails.
  virtual void FailAfter(int64_t calls, DeviceFault fault) = 0;
  // The Replay after this many more replays fails.
  virtual void FailAfterReplays(int64_t replays, DeviceFault fault) = 0;
  // Sets the simulated time of a piece of work, by the kernel's name, "Copy" or "Replay"; without it work takes none.
  virtual void SetWorkTime(std::function<absl::Duration(const std::string& work)> time_of) = 0;
  virtual int64_t free_bytes() const = 0;
  // The number of pieces of memory that have not been freed.
  virtual int64_t allocations() const = 0;
  // Takes effect with the next kernel.
  virtual void SetEmulation(const cuda::emulated::EmulationOptions& options) = 0;
  // The number of pieces of work that are queued and have not run.
  virtual int64_t queued() const = 0;
};

std::unique_ptr<EmulatedDevice> MakeEmulatedDevice(const EmulatedDeviceOptions& options = {});

}  // namespace longshort::models
