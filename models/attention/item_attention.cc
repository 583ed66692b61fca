#include "models/attention/item_attention.h"

#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<std::unique_ptr<ItemAttention>> MakeItemAttention(const GpuBackends* gpus, const WorkerDevice& device,
                                                                 int64_t head_width) {
  if (device.kind == DeviceKind::kCpu) return nullptr;
  if (gpus != nullptr) return gpus->MakeItemAttention(device, head_width);
  return absl::UnimplementedError(absl::StrCat("no classifier runs on ", DeviceName(device), " in this build"));
}

}  // namespace longshort
