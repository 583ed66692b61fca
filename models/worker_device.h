// The device that a worker of a model runs on, in plain types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort::models {

// kEmulated: a GPU whose kernels run on the CPU; in tests only.
enum class DeviceKind { kCpu, kCuda, kEmulated };

// The part of the machine that one worker uses.
struct WorkerDevice {
  DeviceKind kind = DeviceKind::kCpu;
  // Index among the devices of its kind, from 0. The CPU is one device, 0.
  int index = 0;
  // CPU only: maximum number of threads for one step or batch; 0: the number that the model was loaded for.
  int threads = 0;
  // Maximum size of the worker's cache in the device's memory; 0: an equal share of the engine's limit.
  int64_t memory_bytes = 0;

  bool IsOnDeviceOf(const WorkerDevice& other) const { return kind == other.kind && index == other.index; }
};

// The name that --devices uses: "cpu", "cuda:1", "emulated:0".
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
  std::vector<int64_t> memory_bytes = {};  // of each GPU, by its index
};

// `count` equal workers on the CPU.
inline std::vector<WorkerDevice> CpuWorkers(int count, int threads = 0) {
  return std::vector<WorkerDevice>(count, {.kind = DeviceKind::kCpu, .index = 0, .threads = threads});
}

}  // namespace longshort::models
