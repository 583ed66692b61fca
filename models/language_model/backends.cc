#include "models/language_model/backends.h"

#include "absl/strings/str_cat.h"
#include "models/language_model/cpu_backend.h"

namespace longshort {

absl::StatusOr<std::unique_ptr<LanguageModelBackend>> MakeBackend(Decoder& decoder, const WorkerDevice& device,
                                                                  const GpuBackends* gpus,
                                                                  const std::function<void()>& between) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return MakeCpuBackend(decoder, device.threads, between);
    case DeviceKind::kCuda:
    case DeviceKind::kEmulated:
      if (gpus != nullptr) return gpus->Make(decoder, device, between);
      break;
  }
  return absl::UnimplementedError(absl::StrCat("no language model runs on ", DeviceName(device), " in this build"));
}

}  // namespace longshort
