// How a classifier is loaded.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/worker_device.h"

namespace longshort {

class GpuBackends;

struct ClassifierOptions {
  // "fp32", or "bf16": GPUs compute in bfloat16, and sum in float32. The CPU computes in float32 in both.
  std::string precision = "fp32";
  // Threads that loading and one batch use; 0 leaves LibTorch's own choice, one for each core.
  int threads = 0;
  // Devices that it is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // For the GPUs among the devices; null in a build for the CPU only. Must outlive the classifier.
  const GpuBackends* gpus = nullptr;

  bool ComputesInBFloat16(const WorkerDevice& device) const {
    return precision == "bf16" && device.kind != DeviceKind::kCpu;
  }
  // As ClassifierInfo has it.
  std::string_view InfoPrecision() const {
    const bool any = std::any_of(devices.begin(), devices.end(),
                                 [this](const WorkerDevice& device) { return ComputesInBFloat16(device); });
    return any ? "bf16" : "fp32";
  }
};

}  // namespace longshort
