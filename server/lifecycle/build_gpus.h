// The GPUs that this build of the server runs models on: CUDA's where it was built with CUDA, else none.
#pragma once

#include <memory>

#include "server/lifecycle/run.h"

namespace longshort {

class GpuBackends;

struct BuildGpus {
  GpusOfBuild gpus;
  std::shared_ptr<const GpuBackends> backends = nullptr;  // null: none
};

BuildGpus GpusOfThisBuild();

}  // namespace longshort
