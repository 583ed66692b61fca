// What devices do beside the work: CUDA counts used memory and starts a profiler, which has no effect on other devices;
// the system counts this process's memory.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "tests/golden/golden_device.h"

namespace longshort {

// The bytes of the GPU's memory that all processes use. Throws what LibTorch throws.
int64_t UsedMemory(const GoldenDevice& device);

// A profiler that does not profile from the start (ncu --profile-from-start off) begins here.
void StartProfiling(const GoldenDevice& device);

// Measures in turns with other programs: writes "ready", and then for each line of standard input the seconds of one
// run, as a line. Returns at the end of the input, with the error of a run, or DATA_LOSS if the output cannot be
// written.
absl::Status RunInTurns(const std::function<absl::StatusOr<double>()>& run);

// How far this process's resident memory rises above what it is at construction.
class ResidentPeak final {
 public:
  ResidentPeak();

  int64_t Bytes() const;

 private:
  int64_t before_ = 0;
};

}  // namespace longshort
