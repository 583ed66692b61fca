// What this process may use of the machine: the defaults for threads and memory follow it, not the machine's size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/worker_device.h"

namespace longshort::server {

struct MachineLimits {
  // CPUs worth of time, at least 1: the smallest of the affinity mask and the cgroup's quota (rounded down).
  int64_t cpus = 1;
  // The smallest of the machine's memory and the cgroup's limit; 0 if neither can be read.
  int64_t memory_bytes = 0;
  // Nothing in a build for the CPU only.
  std::optional<models::Gpus> gpus = {};
};

// Reads affinity from the system, and cgroup v2 or v1 limits (of the process's own group and every group above) from
// the files below `root`. What cannot be read limits nothing.
MachineLimits ReadMachineLimits(const std::string& root = "/");

}  // namespace longshort::server
