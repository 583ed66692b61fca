// Where loading finds GPUs: what a build that runs models on them gives, and a build for the CPU only has none of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort::models {

struct Decoder;
class GpuItemAttention;
struct PreparedDevice;

// Thread-safe.
class GpuBackends {
 public:
  virtual ~GpuBackends() = default;

  // The calling thread is about to bring weights to the device, for a worker that it makes afterwards.
  virtual void BeginLoading(const WorkerDevice& device) const = 0;
  // Of a language model: PrepareForGpu (models/language_model/backends.h).
  // Errors: INVALID_ARGUMENT if there is no such GPU.
  virtual absl::StatusOr<PreparedDevice> Prepare(Decoder& decoder, const WorkerDevice& device,
                                                 const std::function<void()>& between) const = 0;
  // Of a classifier: what one worker's layers ask of the GPU. `head_width`: of the model's widest heads.
  // Errors: INVALID_ARGUMENT if there is no such GPU; those of MakeGpuItemAttention (models/attention).
  virtual absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeItemAttention(const WorkerDevice& device,
                                                                              int64_t head_width) const = 0;
  // Of a GPU's memory, what the graphs of one worker of a classifier refer to, beside weights and LibTorch's tensors.
  virtual int64_t ImageGraphBytes(int64_t image_values, int64_t classes) const = 0;
  virtual int64_t DocumentGraphBytes(int64_t classes) const = 0;
};

}  // namespace longshort::models
