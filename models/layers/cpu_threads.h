// What a model that runs on the CPU only makes of a worker's device.
#pragma once

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort {

// Threads of a replica for a worker on `device`; `loaded`: those that the model was loaded for.
// Errors: UNIMPLEMENTED for a device that is not the CPU.
absl::StatusOr<int> CpuThreads(const WorkerDevice& device, int loaded);

}  // namespace longshort
