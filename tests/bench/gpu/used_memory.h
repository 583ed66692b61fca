// How much of its memory a GPU has given to anybody.
#pragma once

#include <cstdint>

#include "tests/golden/golden_device.h"

namespace longshort {

// Bytes; 0 for what is no GPU of CUDA's. Throws what LibTorch throws.
int64_t UsedMemory(const GoldenDevice& device);

}  // namespace longshort
