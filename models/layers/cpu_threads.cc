#include "models/layers/cpu_threads.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<int> CpuThreads(const WorkerDevice& device, int loaded) {
  if (device.kind == DeviceKind::kCpu) return device.threads == 0 ? loaded : device.threads;
  return absl::UnimplementedError(
      absl::StrCat("the model is on the CPU and cannot run on ", DeviceName(device), " in this build"));
}

}  // namespace longshort
