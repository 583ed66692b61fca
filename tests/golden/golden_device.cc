#include "tests/golden/golden_device.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "models/device/gpu_device.h"
#if defined(LONGSHORT_CUDA_GPU)
#include "models/load_options.h"
#elif defined(LONGSHORT_EMULATED_GPU)
#include "tests/models/families/language_model/emulated_backends.h"
#endif

namespace longshort {

absl::StatusOr<GoldenDevice> FindGoldenDevice(const std::string& name) {
  if (name == "cpu") return GoldenDevice{.devices = {{.kind = models::DeviceKind::kCpu}}};
#if defined(LONGSHORT_CUDA_GPU)
  models::WorkerDevice device = {.kind = models::DeviceKind::kCuda};
  if (absl::StartsWith(name, "cuda:") && absl::SimpleAtoi(absl::StripPrefix(name, "cuda:"), &device.index)) {
    static const auto cuda = models::MakeCudaBackends(std::make_shared<models::GpuLoss>());
    return GoldenDevice{.devices = {device}, .gpus = cuda.get()};
  }
#elif defined(LONGSHORT_EMULATED_GPU)
  models::WorkerDevice device = {.kind = models::DeviceKind::kEmulated};
  if (absl::StartsWith(name, "emulated:") && absl::SimpleAtoi(absl::StripPrefix(name, "emulated:"), &device.index)) {
    static std::vector<const models::EmulatedDevice*> opened;
    static const models::EmulatedBackends emulated({},
                                                   [](models::EmulatedDevice& device) { opened.push_back(&device); });
    const auto kernels_run = [] {
      int64_t runs = 0;
      for (const models::EmulatedDevice* const each : opened) {
        for (const auto& [name, count] : each->kernels_run()) runs += count;
      }
      return runs;
    };
    return GoldenDevice{.devices = {device}, .gpus = &emulated, .kernels_run = kernels_run};
  }
#endif
  return absl::InvalidArgumentError(absl::StrCat("--device is '", name, "', which this build does not have"));
}

}  // namespace longshort
