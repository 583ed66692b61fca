#include "tests/models/gpu/emulated_device.h"
#include "tests/models/gpu/tested_device.h"

namespace longshort::models::cuda {

std::unique_ptr<GpuDevice> MakeTestedDevice() { return MakeEmulatedDevice(); }

void SetEmulation(GpuDevice& device, const emulated::EmulationOptions& options) {
  static_cast<EmulatedDevice&>(device).SetEmulation(options);
}

}  // namespace longshort::models::cuda
