// The interface through which loading puts models on GPUs. Only builds with GPU support implement it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort::models {

struct Decoder;
class GpuItemAttention;
class GpuLoss;
struct PreparedDevice;

// Thread-safe.
class GpuBackends {
 public:
  virtual ~GpuBackends() = default;

  // Call before the calling thread copies weights to the device for a worker that it creates afterwards.
  virtual void BeginLoading(const WorkerDevice& device) const = 0;
  // Prepares a language model: PrepareForGpu (models/families/language_model/backend.h).
  // Errors: INVALID_ARGUMENT if there is no such GPU.
  virtual absl::StatusOr<PreparedDevice> Prepare(Decoder decoder, const WorkerDevice& device,
                                                 const std::function<void()>& between) const = 0;
  // Creates the GPU ops that the layers of one classifier worker use. `head_width`: of the model's widest heads.
  // Errors: INVALID_ARGUMENT if there is no such GPU; those of MakeGpuItemAttention.
  virtual absl::StatusOr<std::unique_ptr<GpuItemAttention>> MakeItemAttention(const WorkerDevice& device,
                                                                              int64_t head_width) const = 0;
  // GPU memory that the graphs of one classifier worker use, in addition to weights and LibTorch's tensors.
  virtual int64_t ImageGraphBytes(int64_t image_values, int64_t classes) const = 0;
  virtual int64_t DocumentGraphBytes(int64_t classes) const = 0;
};

// The GPUs of this machine; none without a driver. This and MakeCudaBackends are only in builds with CUDA
// (LONGSHORT_CUDA).
Gpus FindCudaGpus();

// Creates the backends. Also makes LibTorch compute float32 products in float32 on GPUs (no TF32), and sum in float32.
// `loss` is notified if a GPU fails.
std::shared_ptr<const GpuBackends> MakeCudaBackends(std::shared_ptr<GpuLoss> loss);

}  // namespace longshort::models
