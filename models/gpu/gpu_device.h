// What a worker needs of a GPU: memory, one stream of work, graphs. Each verb is a call or two of CUDA's
// (cuda_device.h); tests have a device that runs kernels on the processor and watches over the rules below. No CUDA and
// no LibTorch here.
//
// Work is queued, in order; the host goes on at once. Nothing queued reads or writes host memory that is not pinned,
// and the host leaves alone what queued work uses until Wait or Synchronize says that it is done.
//
// Errors of every verb: RESOURCE_EXHAUSTED if the device has no memory for it; INTERNAL if the device failed, perhaps
// at work that was queued before. Then has_failed() tells whether the device is lost to this process: every later verb
// fails. Thread: the worker's; several devices, one each, run side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/gpu/kernel_call.h"

namespace longshort::models {

struct GpuFacts {
  std::string name;
  int number = 0;  // N of cuda:N
  // Of its compute capability: 9.0 is sm_90.
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
};

// Who reads and writes a piece of memory: kernels and copies alone, or LibTorch's calls as well (a tensor is made of
// it).
enum class GpuMemoryUse { kKernels, kLibraryToo };

// Queued work up to a point. Belongs to the device that made it, and must not outlive it; so does a graph.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
};

// Work that is queued as a whole.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
};

class GpuDevice {
 public:
  virtual ~GpuDevice() = default;

  virtual const GpuFacts& facts() const = 0;
  virtual absl::StatusOr<int64_t> FreeBytes() = 0;

  // At a multiple of 256; what it holds is undefined. REQUIRES: bytes > 0.
  virtual absl::StatusOr<void*> Allocate(size_t bytes, GpuMemoryUse use) = 0;
  // Host memory that copies may name.
  virtual absl::StatusOr<void*> AllocatePinned(size_t bytes) = 0;
  // REQUIRES: no queued work uses it. Null is nothing.
  virtual void Free(void* memory) = 0;
  virtual void FreePinned(void* memory) = 0;

  // Queues a copy between device memory and device or pinned memory.
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  // Queues: sets every byte.
  virtual absl::Status Fill(void* to, uint8_t byte, size_t bytes) = 0;
  // Queues a kernel, with its arguments as they are now. Does nothing for an empty grid.
  virtual absl::Status Launch(const KernelCall& call) = 0;

  // LibTorch is about to read what kernels wrote, or to write what they read: to be called before, each time. On a GPU
  // its calls are work of the same stream, and there is nothing to do; where its tensors are the processor's it runs
  // what is queued.
  virtual absl::Status BeforeLibraryCalls() = 0;

  // All that is queued so far.
  virtual absl::StatusOr<std::unique_ptr<GpuEvent>> Record() = 0;
  // Waits until it is done.
  virtual absl::Status Wait(const GpuEvent& event) = 0;
  // Waits until all that is queued is done.
  virtual absl::Status Synchronize() = 0;

  // Makes a graph of what `body` queues, LibTorch's calls included, without running it. Within `body`: Copy, Fill,
  // Launch and BeforeLibraryCalls only. Sizes, pointers and kernels' arguments are kept as they were; what memory holds
  // is read when the graph runs. Tensors that LibTorch makes within `body` stay the graph's.
  // A device on the processor calls `body` again for each run, for LibTorch's calls in it: it must queue the same
  // again, with no arguments that differ but those tensors' addresses, and what it refers to must live as long as the
  // graph. Errors: as above, and what `body` returns.
  virtual absl::StatusOr<std::unique_ptr<GpuGraph>> Capture(const std::function<absl::Status()>& body) = 0;
  // Queues a run of the graph.
  virtual absl::Status Replay(GpuGraph& graph) = 0;

  virtual bool has_failed() const = 0;
};

}  // namespace longshort::models
