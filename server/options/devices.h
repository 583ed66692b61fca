// Where a model's workers run, from --devices: a list of "cpu", "cpu:N" for N workers, and "cuda:N" for one worker on
// GPU N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/worker_device.h"
#include "server/options/machine_limits.h"

namespace longshort::server {

struct Devices {
  // Threads that each run a replica of the model; the replicas share weights. 1 to 64, or 0: none on the CPU.
  int cpu_workers = 0;
  // Numbers of the GPUs, all of one kind, in the order of the list: 0 to 63, each once.
  models::DeviceKind gpu_kind = models::DeviceKind::kCuda;
  std::vector<int> gpus = {};

  int workers() const { return cpu_workers + static_cast<int>(gpus.size()); }
};

// Parses a list of devices, separated by commas. Errors: INVALID_ARGUMENT, with a message that does not repeat `text`.
absl::StatusOr<Devices> ParseDevices(const std::string& text);

// As ParseDevices, and checks that this build supports the devices and that the machine has them. Errors:
// INVALID_ARGUMENT as above, or naming the missing device and what to write instead.
absl::StatusOr<Devices> ParseServedDevices(const std::string& text, const MachineLimits& machine);

// Threads of each worker on the CPU if the workers share `threads`: at least 1.
int64_t ThreadsPerWorker(int64_t threads, const Devices& devices);

// The workers, those on the CPU first, which share `threads`.
std::vector<models::WorkerDevice> WorkersOn(const Devices& devices, int64_t threads);

}  // namespace longshort::server
