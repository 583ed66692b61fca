// Options for loading a model, in plain types.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/worker_device.h"

namespace longshort::models {

class GpuBackends;

struct LoadOptions {
  // "fp32" or "bf16". With "bf16", weights and cache pages are bfloat16, and so are products if the processor supports
  // them; sums, norms and softmaxes stay float32. On the CPU, classifiers always compute in float32.
  std::string precision = "fp32";
  // Threads for loading, and for one step or batch; 0: one per core.
  int threads = 0;
  // Devices that the model runs on, without duplicates; empty: the CPU.
  std::vector<WorkerDevice> devices = {};
  // Required if `devices` has GPUs; null in a CPU-only build. Must outlive the loaded model.
  const GpuBackends* gpus = nullptr;

  // Returns at least one device. CPU devices without a thread count of their own get `threads`.
  std::vector<WorkerDevice> DevicesOrCpu() const {
    std::vector<WorkerDevice> all = devices;
    if (all.empty()) all.push_back({.kind = DeviceKind::kCpu});
    for (WorkerDevice& device : all) {
      if (device.threads == 0) device.threads = threads;
    }
    return all;
  }
  // Whether a classifier computes in bfloat16 on this device, or on any device.
  bool ComputesInBFloat16(const WorkerDevice& device) const {
    return precision == "bf16" && device.kind != DeviceKind::kCpu;
  }
  bool ComputesInBFloat16() const {
    return std::any_of(devices.begin(), devices.end(),
                       [this](const WorkerDevice& device) { return ComputesInBFloat16(device); });
  }
};

}  // namespace longshort::models
