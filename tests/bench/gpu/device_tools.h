// What CUDA does beside the work: it counts used memory, and starts a profiler. No effect on other devices.
#pragma once

#include <cstdint>

#include "tests/golden/golden_device.h"

namespace longshort {

// The bytes of the GPU's memory that all processes use. Throws what LibTorch throws.
int64_t UsedMemory(const GoldenDevice& device);

// A profiler that does not profile from the start (ncu --profile-from-start off) begins here.
void StartProfiling(const GoldenDevice& device);

}  // namespace longshort
