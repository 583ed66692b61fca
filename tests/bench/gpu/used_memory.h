// The amount of a GPU's memory that all processes use.
#pragma once

#include <cstdint>

#include "tests/golden/golden_device.h"

namespace longshort {

// Bytes; 0 for what is no GPU of CUDA's. Throws what LibTorch throws.
int64_t UsedMemory(const GoldenDevice& device);

}  // namespace longshort
