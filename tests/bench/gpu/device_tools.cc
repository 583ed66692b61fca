#include "tests/bench/gpu/device_tools.h"

#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "base/status_macros.h"

#if defined(LONGSHORT_CUDA_GPU)
#include "c10/cuda/CUDAException.h"
#include "cuda_profiler_api.h"
#include "cuda_runtime_api.h"
#endif

namespace longshort {
namespace {

// A line of /proc/self/status, such as "VmHWM:", in bytes; 0 if there is none.
int64_t OwnMemory(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes << 10;
  }
  return 0;
}

}  // namespace

int64_t UsedMemory([[maybe_unused]] const GoldenDevice& device) {
#if defined(LONGSHORT_CUDA_GPU)
  if (device.devices.front().kind == models::DeviceKind::kCuda) {
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaSetDevice(device.devices.front().index));
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(total - free);
  }
#endif
  return 0;
}

void StartProfiling([[maybe_unused]] const GoldenDevice& device) {
#if defined(LONGSHORT_CUDA_GPU)
  if (device.devices.front().kind == models::DeviceKind::kCuda) C10_CUDA_CHECK(cudaProfilerStart());
#endif
}

absl::Status RunInTurns(const std::function<absl::StatusOr<double>()>& run) {
  std::cout << "ready" << std::endl;
  for (std::string turn; std::cout && std::getline(std::cin, turn);) {
    LS_ASSIGN_OR_RETURN(const double seconds, run());
    std::cout << seconds << std::endl;
  }
  return std::cout ? absl::OkStatus() : absl::DataLossError("standard output cannot be written");
}

ResidentPeak::ResidentPeak() {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is now the current size
  before_ = OwnMemory("VmRSS:");
}

int64_t ResidentPeak::Bytes() const { return OwnMemory("VmHWM:") - before_; }

}  // namespace longshort
