#include "models/device/gpu_device.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda {

std::unique_ptr<GpuDevice> MakeTestedDevice() { return MakeCudaDevice({}).value(); }

void SetEmulation(GpuDevice&, const emulated::EmulationOptions&) {}

}  // namespace longshort::models::cuda
