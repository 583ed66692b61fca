// Models on emulated GPUs.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "models/device/gpu_device.h"
#include "models/device/model_gpu.h"
#include "models/load_options.h"
#include "tests/models/device/library_streams.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models {

// Number of GPUs, numbered from 0.
inline constexpr int kEmulatedGpus = 8;
// Fewer than on a real GPU: emulated captures are slow.
inline constexpr int64_t kMaxGraphRows = 4;
inline constexpr int64_t kMaxGraphImages = 2;
inline constexpr int64_t kMaxGraphDocuments = 2;
inline constexpr int64_t kMaxGraphDocumentRows = 64;

class EmulatedBackends final : public GpuBackends {
 public:
  // Called with every opened device, before its first use.
  using DeviceHook = std::function<void(EmulatedDevice&)>;

  explicit EmulatedBackends(
      const EmulatedDeviceOptions& options = {}, DeviceHook hook = [](EmulatedDevice&) {},
      std::shared_ptr<GpuLoss> loss = std::make_shared<GpuLoss>(), int64_t max_graph_rows = kMaxGraphRows)
      : options_(OnLibraryStreams(options)),
        hook_(std::move(hook)),
        loss_(std::move(loss)),
        graphs_{.rows = max_graph_rows,
                .images = kMaxGraphImages,
                .documents = kMaxGraphDocuments,
                .document_rows = kMaxGraphDocumentRows} {}

  // As with CUDA: the thread's current stream may be a worker's.
  void BeginLoading(const WorkerDevice&) const override { TestedLibraryStreams().SetCurrent(LibraryStreams::kDefault); }
  absl::StatusOr<PreparedDevice> Prepare(Decoder decoder, const WorkerDevice& device,
                                         const std::function<void()>& between) const override;
  absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeItemAttention(const WorkerDevice& device,
                                                                      int64_t head_width) const override;
  int64_t ImageGraphBytes(const ImageShape& image, int64_t classes) const override;
  int64_t DocumentGraphBytes(int64_t classes) const override;

 private:
  static EmulatedDeviceOptions OnLibraryStreams(EmulatedDeviceOptions options) {
    options.library = &TestedLibraryStreams();
    return options;
  }
  absl::StatusOr<ModelGpu> Find(const WorkerDevice& device) const;

  const EmulatedDeviceOptions options_;
  const DeviceHook hook_;
  const std::shared_ptr<GpuLoss> loss_;
  const GraphLimits graphs_;
};

}  // namespace longshort::models
