// The interface of a GPU for a worker: memory, one stream of work, graphs. Each method is one or two CUDA calls
// (cuda_device.cc). Tests have a device that runs kernels on the CPU and checks the rules below. No CUDA and no
// LibTorch here.
//
// Methods queue work in order and return at once. Queued work accesses only pinned host memory. The host must not touch
// memory that queued work uses until Wait or Synchronize returns.
//
// Errors of every method: RESOURCE_EXHAUSTED if the device has no memory for it; INTERNAL if the device failed,
// possibly in work queued earlier. In that case has_failed() returns whether the device is lost to this process, so
// that every later call fails. Thread: the worker's. Several devices, one per worker, may run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "models/device/kernel_call.h"

namespace longshort::models {

struct GpuFacts {
  std::string name;
  int number = 0;  // N of cuda:N
  // Compute capability: 9.0 is sm_90.
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  // The most shared memory that a thread block may have.
  int64_t max_shared_bytes = 0;
};

// Errors: UNIMPLEMENTED for a chip that lacks instructions of the kernels (device.h).
inline absl::Status CheckChip(const GpuFacts& facts) {
  if (facts.major >= 8) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(facts.name, " has compute capability ", facts.major, ".", facts.minor,
                                               "; at least 8.0 is needed (A100); run the model on the CPU"));
}
// Errors: UNIMPLEMENTED for a kernel whose blocks need more shared memory than the chip has.
inline absl::Status CheckSharedMemory(const KernelCall& call, const GpuFacts& facts) {
  if (static_cast<int64_t>(call.shape.shared_bytes) <= facts.max_shared_bytes) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("kernel ", call.name, " needs ", call.shape.shared_bytes,
                                               " bytes of shared memory for a block at this model's widths; ",
                                               facts.name, " allows ", facts.max_shared_bytes,
                                               "; serve the model on another GPU or with --devices=cpu"));
}

// The users of a piece of memory: kernels and copies only, or LibTorch calls as well (it backs a tensor).
enum class GpuMemoryUse { kKernels, kLibraryToo };

// A point in the queue of work. Belongs to the device that created it, and must not outlive it; the same holds for a
// graph.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
};

// Captured GPU work (a CUDA graph) that Replay queues as a whole.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
};

class GpuDevice {
 public:
  virtual ~GpuDevice() = default;

  virtual const GpuFacts& facts() const = 0;

  // Aligned to 256 bytes; uninitialised. REQUIRES: bytes > 0.
  virtual absl::StatusOr<void*> Allocate(size_t bytes, GpuMemoryUse use) = 0;
  // Host memory that copies may use.
  virtual absl::StatusOr<void*> AllocatePinned(size_t bytes) = 0;
  // REQUIRES: no queued work uses it. Does nothing for null.
  virtual void Free(void* memory) = 0;
  virtual void FreePinned(void* memory) = 0;

  // Queues a copy between device memory and device or pinned memory.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  // Queues a kernel with a copy of its arguments. Does nothing for an empty grid.
  virtual absl::Status Launch(const KernelCall& call) = 0;

  // Call each time before LibTorch reads what kernels wrote, or writes what they read. On a GPU this does nothing,
  // because LibTorch's calls use the same stream. An emulated device, whose tensors are on the CPU, runs the queued
  // work.
  virtual absl::Status BeforeLibraryCalls() = 0;

  // Records an event after all work queued so far.
  virtual absl::StatusOr<std::unique_ptr<GpuEvent>> Record() = 0;
  // Waits for the work before the event.
  virtual absl::Status Wait(const GpuEvent& event) = 0;
  // The time that the device took from one event to a later one. REQUIRES: Wait was called for the later one.
  virtual absl::StatusOr<absl::Duration> Elapsed(const GpuEvent& from, const GpuEvent& to) = 0;
  // Waits for all queued work.
  virtual absl::Status Synchronize() = 0;

  // Captures the work that `body` queues, LibTorch's calls included, as a graph without running it. `body` may call
  // only Copy, Launch and BeforeLibraryCalls. The graph keeps sizes, pointers and kernel arguments; it reads
  // memory when it runs. Tensors that LibTorch creates in `body` belong to the graph.
  // An emulated device calls `body` again for each run, because of LibTorch's calls in it. `body` must then queue the
  // same work; only the addresses of those tensors may differ. Objects that `body` refers to must live as long as the
  // graph.
  // Errors: as above, and those of `body`.
  virtual absl::StatusOr<std::unique_ptr<GpuGraph>> Capture(const std::function<absl::Status()>& body) = 0;
  // Queues a run of the graph.
  virtual absl::Status Replay(GpuGraph& graph) = 0;

  // Asks the device whether it is lost. False during a capture, which must be ended first.
  virtual bool has_failed() = 0;
};

// For MakeCudaDevice.
struct CudaDeviceOptions {
  int number = 0;
  // The cudaStream_t for queued work; it must outlive the device. Pass LibTorch's current stream if its calls must be
  // in order with kernels. Null: the device creates its own stream.
  void* stream = nullptr;
  // Called by BeforeLibraryCalls. Makes the stream current in the calling thread, for devices that several threads use
  // in turn.
  std::function<void()> before_library_calls = [] {};
  // Called around a capture, so that LibTorch's allocator reserves the graph's memory.
  std::function<void()> before_capture = [] {};
  std::function<void()> after_capture = [] {};
  // Called if the GPU has no memory for an allocation, which is then tried again, once. Must not throw.
  std::function<void()> free_cached_memory = [] {};
};

// Opens a device on the CUDA runtime. Compiled only with a CUDA toolkit (LONGSHORT_CUDA).
// Errors: UNAVAILABLE if there is no driver or no such GPU.
absl::StatusOr<std::unique_ptr<GpuDevice>> MakeCudaDevice(const CudaDeviceOptions& options);

// Reports that a GPU is lost to this process, which must be restarted to use it again. Thread-safe.
class GpuLoss final {
 public:
  using Listener = std::function<void(const std::string& why)>;

  // Sets the listener, which is called at most once; null: none.
  void SetListener(Listener listener) {
    const MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  // `why`: the GPU, and its error.
  void Report(const std::string& why) {
    Listener listener;
    {
      const MutexLock lock(mutex_);
      std::swap(listener, listener_);
    }
    if (listener) listener(why);
  }

 private:
  Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::models
