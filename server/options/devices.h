// Where a model's workers run, as --devices says: "cpu", or "cpu:N" for N workers.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace longshort {

struct Devices {
  // Each is a thread with a replica of the model, whose weights they share. 1 to 64.
  int cpu_workers = 1;
};

// Errors: INVALID_ARGUMENT saying what is wrong with `text`, a list of devices separated by commas, without naming it.
absl::StatusOr<Devices> ParseDevices(const std::string& text);

// Threads of each worker, if they divide so many among them: at least 1.
int64_t ThreadsPerWorker(int64_t threads, const Devices& devices);

}  // namespace longshort
