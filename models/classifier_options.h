// How a classifier is loaded.
#pragma once

#include <vector>

#include "models/worker_device.h"

namespace longshort {

class GpuBackends;

struct ClassifierOptions {
  // Threads that loading and one batch use; 0 leaves LibTorch's own choice, one for each core.
  int threads = 0;
  // Devices that it is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // For the GPUs among the devices; null in a build for the CPU only. Must outlive the classifier.
  const GpuBackends* gpus = nullptr;
};

}  // namespace longshort
