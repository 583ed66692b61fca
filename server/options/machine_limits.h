// CPUs, memory and GPUs that this process may use. The defaults for threads and memory depend on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace longshort::server
