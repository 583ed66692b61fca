// Where a worker of a model runs, in plain types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort::models {

// kEmulated: a GPU whose kernels the processor runs; of test programs only.
enum class DeviceKind { kCpu, kCuda, kEmulated };

// What one worker has of the machine.
struct WorkerDevice {
  DeviceKind kind = DeviceKind::kCpu;
  // Which device of its kind, from 0; 0 on the CPU, which is one device.
  int index = 0;
  // On the CPU: threads of one step or batch at the most; 0 takes as many as the model was loaded for.
  int threads = 0;
  // Bytes of the device's memory that the worker's cache may take; 0: an equal part of what its engine's caches may.
  int64_t memory_bytes = 0;

  bool IsOnDeviceOf(const WorkerDevice& other) const { return kind == other.kind && index == other.index; }
};

// As --devices names it: "cpu", "cuda:1", "emulated:0".
inline std::string DeviceName(const WorkerDevice& device) {
  if (device.kind == DeviceKind::kCpu) return "cpu";
  return absl::StrCat(device.kind == DeviceKind::kCuda ? "cuda:" : "emulated:", device.index);
}

// The first worker on each device.
inline std::vector<WorkerDevice> DistinctDevices(const std::vector<WorkerDevice>& workers) {
  std::vector<WorkerDevice> devices;
  for (const WorkerDevice& worker : workers) {
    const bool known = std::any_of(devices.begin(), devices.end(),
                                   [&worker](const WorkerDevice& device) { return device.IsOnDeviceOf(worker); });
    if (!known) devices.push_back(worker);
  }
  return devices;
}

// GPUs that models can run on.
struct Gpus {
  DeviceKind kind = DeviceKind::kCuda;
  std::vector<int64_t> memory_bytes = {};  // of each, by its number
};

// So many workers on the CPU, all alike.
inline std::vector<WorkerDevice> CpuWorkers(int count, int threads = 0) {
  return std::vector<WorkerDevice>(count, {.kind = DeviceKind::kCpu, .index = 0, .threads = threads});
}

}  // namespace longshort::models
