// Where a model's workers run, as --devices says: a list of "cpu", "cpu:N" for N workers, and "cuda:N" for one worker
// on the GPU of that number.
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
  // Each is a thread with a replica of the model, whose weights they share. 1 to 64, or 0: none on the CPU.
  int cpu_workers = 0;
  // GPUs, all of one kind, by number, in the order of the list: 0 to 63, each once.
  models::DeviceKind gpu_kind = models::DeviceKind::kCuda;
  std::vector<int> gpus = {};

  int workers() const { return cpu_workers + static_cast<int>(gpus.size()); }
};

// Errors: INVALID_ARGUMENT saying what is wrong with `text`, a list of devices separated by commas, without naming it.
absl::StatusOr<Devices> ParseDevices(const std::string& text);

// As ParseDevices, and whether this build runs models on all devices of the list, and the machine has them.
// Errors: INVALID_ARGUMENT as above, or saying which there is not, and what to write instead.
absl::StatusOr<Devices> ParseServedDevices(const std::string& text, const MachineLimits& machine);

// Threads of each worker on the CPU, if they divide so many among them: at least 1.
int64_t ThreadsPerWorker(int64_t threads, const Devices& devices);

// The workers, those on the CPU first, which divide so many threads among them.
std::vector<models::WorkerDevice> WorkersOn(const Devices& devices, int64_t threads);

}  // namespace longshort::server
