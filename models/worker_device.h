// Where a worker of a model runs, in plain types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort {

enum class DeviceKind { kCpu, kCuda };

// What one worker has of the machine.
struct WorkerDevice {
  DeviceKind kind = DeviceKind::kCpu;
  // Which device of its kind; 0 on the CPU, which is one device.
  int index = 0;
  // On the CPU: threads of one step or batch at the most; 0 takes as many as the model was loaded for.
  int threads = 0;
  // Bytes of the device's memory that the worker's cache may take; 0: an equal part of what its engine's caches may.
  int64_t memory_bytes = 0;

  bool IsOnDeviceOf(const WorkerDevice& other) const { return kind == other.kind && index == other.index; }
};

// As --devices names it: "cpu", "cuda:1".
inline std::string DeviceName(const WorkerDevice& device) {
  return device.kind == DeviceKind::kCpu ? "cpu" : absl::StrCat("cuda:", device.index);
}

// So many workers on the CPU, all alike.
inline std::vector<WorkerDevice> CpuWorkers(int count, int threads = 0) {
  return std::vector<WorkerDevice>(count, {.kind = DeviceKind::kCpu, .index = 0, .threads = threads});
}

}  // namespace longshort
