// The device that the tests of kernels run on: the emulated one, or, in a program of a build with CUDA, a GPU. Which of
// the two is linked decides.
#pragma once

#include <memory>

#include "models/device/gpu_device.h"
#include "tests/models/gpu/emulation/every_order.h"

namespace longshort::models::cuda {

// A fresh one.
std::unique_ptr<GpuDevice> MakeTestedDevice();

// How the emulated one runs kernels from now on; of no effect on a GPU.
void SetEmulation(GpuDevice& device, const emulated::EmulationOptions& options);

}  // namespace longshort::models::cuda
