// The GPUs that a build can run models on.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort {

class GpuDevice;

// Thread-safe.
class GpuPlatform {
 public:
  virtual ~GpuPlatform() = default;

  // Those that this process can see.
  virtual Gpus List() const = 0;
  // A stream of its own on the GPU of that number, for one worker. REQUIRES: `index` is one of the list's.
  // Errors: RESOURCE_EXHAUSTED if the GPU has no memory for it, INTERNAL if the driver fails.
  virtual absl::StatusOr<std::unique_ptr<GpuDevice>> Open(int index) const = 0;
};

}  // namespace longshort
