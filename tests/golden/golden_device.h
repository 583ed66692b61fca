// The device for golden cases, selected with --device: cpu, emulated:N, cuda:N.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort::models {
class GpuBackends;
}

namespace longshort {

struct GoldenDevice {
  std::vector<models::WorkerDevice> devices;  // one
  const models::GpuBackends* gpus = nullptr;  // of static duration
  // The number of kernels that have run on it, while a model is loaded; null if they are not counted.
  std::function<int64_t()> kernels_run = {};
};

// Errors: INVALID_ARGUMENT for a name that is none, or a device that this build does not have.
absl::StatusOr<GoldenDevice> FindGoldenDevice(const std::string& name);

}  // namespace longshort
