// Models on CUDA GPUs. Compiled only in builds with CUDA (LONGSHORT_CUDA). This header does not need LibTorch.
#pragma once

#include <memory>

#include "models/device/gpu_loss.h"
#include "models/worker_device.h"

namespace longshort::models {

class GpuBackends;

// The GPUs of this machine; none without a driver.
Gpus FindCudaGpus();

// Creates the backends. Also makes LibTorch compute float32 products in float32 on GPUs (no TF32), and sum in float32.
// `loss` is notified if a GPU fails.
std::shared_ptr<const GpuBackends> MakeCudaBackends(std::shared_ptr<GpuLoss> loss);

}  // namespace longshort::models
