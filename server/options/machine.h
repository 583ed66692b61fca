// The CPUs, the memory and the GPUs that this process may use, and where a model's workers run. The defaults for
// threads and memory depend on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort::server {

struct MachineLimits {
  // CPUs worth of time, at least 1: the smallest of the affinity mask and the cgroup's quota (rounded down).
  int64_t cpus = 1;
  // The smallest of the machine's memory and the cgroup's limits (memory.max and memory.high); 0 if none can be read.
  int64_t memory_bytes = 0;
  // Absent in a build for the CPU only.
  std::optional<models::Gpus> gpus = {};
};

// Reads the affinity from the system, and the limits of cgroup v2 or v1 (of the process's group and all groups above
// it) from the files below `root`. Files that cannot be read set no limit.
MachineLimits ReadMachineLimits(const std::string& root = "/");

// Where a model's workers run, from --devices: a list of "cpu", "cpu:N" for N workers, and "cuda:N" for one worker on
// GPU N.
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
