// How a classifier is loaded.
#pragma once

#include <vector>

#include "models/worker_device.h"

namespace longshort {

class GpuPlatform;

struct ClassifierOptions {
  // Threads that loading and one batch use; 0 leaves LibTorch's own choice, one for each core.
  int threads = 0;
  // Devices that it is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
  // Where its GPUs are; null if there are none among the devices.
  const GpuPlatform* gpus = nullptr;
};

}  // namespace longshort
