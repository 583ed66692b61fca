#include "tests/models/families/language_model/emulated_backends.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/families/language_model/backend.h"
#include "models/ops/item_attention/batches_on_device.h"
#include "models/ops/item_attention/gpu_item_attention.h"

namespace longshort::models {

absl::StatusOr<PreparedDevice> EmulatedBackends::Prepare(Decoder decoder, const WorkerDevice& device,
                                                         const std::function<void()>& between) const {
  LS_ASSIGN_OR_RETURN(ModelGpu gpu, Find(device));
  BeginLoading(device);
  return PrepareForGpu(std::move(decoder), std::move(gpu), between);
}

absl::StatusOr<std::unique_ptr<GpuItemAttention>> EmulatedBackends::MakeItemAttention(const WorkerDevice& device,
                                                                                      int64_t head_width) const {
  LS_ASSIGN_OR_RETURN(const ModelGpu gpu, Find(device));
  return MakeGpuItemAttention(gpu, head_width);
}

int64_t EmulatedBackends::ImageGraphBytes(const ImageShape& image, int64_t classes) const {
  return longshort::models::ImageGraphBytes(graphs_, image, classes);
}

int64_t EmulatedBackends::DocumentGraphBytes(int64_t classes) const {
  return longshort::models::DocumentGraphBytes(graphs_, classes);
}

absl::StatusOr<ModelGpu> EmulatedBackends::Find(const WorkerDevice& device) const {
  if (device.kind != DeviceKind::kEmulated || device.index >= kEmulatedGpus) {
    return absl::InvalidArgumentError(absl::StrCat("there is no ", DeviceName(device)));
  }
  EmulatedDeviceOptions options = options_;
  options.number = device.index;
  const auto open = [options, hook = hook_]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
    std::unique_ptr<EmulatedDevice> opened = MakeEmulatedDevice(options);
    hook(*opened);
    return opened;
  };
  return ModelGpu{.tensors = at::kCPU, .open = open, .loss = loss_, .graphs = graphs_};
}

}  // namespace longshort::models
