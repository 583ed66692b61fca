// Models on CUDA's GPUs. Compiled where the build has CUDA (LONGSHORT_CUDA). No LibTorch here.
#pragma once

#include <memory>

#include "models/gpu/gpu_loss.h"
#include "models/worker_device.h"

namespace longshort::models {

class GpuBackends;

// The GPUs that there are; none where there is no driver.
Gpus FindCudaGpus();

// From then on LibTorch computes float32 as float32 on GPUs, and sums in float32. `loss` is told of a GPU that is lost.
std::shared_ptr<const GpuBackends> MakeCudaBackends(std::shared_ptr<GpuLoss> loss);

}  // namespace longshort::models
