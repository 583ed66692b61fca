// What devices do beside the work: CUDA counts used memory and starts a profiler, which has no effect on other devices;
// the system counts this process's memory.
#pragma once

#include <cstdint>

#include "tests/golden/golden_device.h"

namespace longshort {

// The bytes of the GPU's memory that all processes use. Throws what LibTorch throws.
int64_t UsedMemory(const GoldenDevice& device);

// A profiler that does not profile from the start (ncu --profile-from-start off) begins here.
void StartProfiling(const GoldenDevice& device);

// How far this process's resident memory rises above what it is at construction.
class ResidentPeak final {
 public:
  ResidentPeak();

  int64_t Bytes() const;

 private:
  int64_t before_ = 0;
};

}  // namespace longshort
