// How a classifier is loaded.
#pragma once

#include <vector>

#include "models/worker_device.h"

namespace longshort {

struct ClassifierOptions {
  // Threads that loading and one batch use; 0 leaves LibTorch's own choice, one for each core.
  int threads = 0;
  // Devices that it is to run on, each once; none: the CPU.
  std::vector<WorkerDevice> devices = {};
};

}  // namespace longshort
