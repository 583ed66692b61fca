// How a model is loaded, in plain types.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/worker_device.h"

namespace longshort::models {

class GpuBackends;

struct LoadOptions {
  // "fp32", or "bf16": weights and cache pages in bfloat16, products where the processor has them; sums, norms and
  // softmaxes stay float32. On the CPU, classifiers compute in float32 in both.
  std::string precision = "fp32";
  // Threads that loading and one step or batch use; 0: one for each core.
  int threads = 0;
  // Devices that the model is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // For the GPUs among the devices; null in a build for the CPU only. Must outlive what is loaded.
  const GpuBackends* gpus = nullptr;

  // At least one. Those on the CPU have `threads` if they name no number themselves.
  std::vector<WorkerDevice> DevicesOrCpu() const {
    std::vector<WorkerDevice> all = devices;
    if (all.empty()) all.push_back({.kind = DeviceKind::kCpu});
    for (WorkerDevice& device : all) {
      if (device.threads == 0) device.threads = threads;
    }
    return all;
  }
  // Whether a classifier computes in bfloat16 there, and on any of the devices.
  bool ComputesInBFloat16(const WorkerDevice& device) const {
    return precision == "bf16" && device.kind != DeviceKind::kCpu;
  }
  bool ComputesInBFloat16() const {
    return std::any_of(devices.begin(), devices.end(),
                       [this](const WorkerDevice& device) { return ComputesInBFloat16(device); });
  }
};

}  // namespace longshort::models
