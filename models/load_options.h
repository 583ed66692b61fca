// Loading of a model, in plain types: what it reads, its options, the memory that weights take, and the interface
// through which loading puts models on GPUs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/worker_device.h"

namespace longshort::models {

struct Decoder;
class GpuBackends;
class GpuItemAttention;
class GpuLoss;
struct ImageShape;
struct PreparedDevice;

// The names of the files in a model directory that loading reads, and that the fingerprint covers.
inline constexpr std::array<std::string_view, 5> kModelFiles = {"config.json", "model.safetensors", "vocabulary.txt",
                                                                "tokenizer.json", "labels.txt"};

struct LoadOptions {
  // "fp32", "bf16" or "int8". Sums, norms and softmaxes are float32 with each.
  // - bf16: weights and cache pages are bfloat16, and so are products if the processor supports them. On the CPU, the
  //   products of classifiers are bfloat16 if it has tiles for them (HasBFloat16Tiles) and the network gains from them
  //   (ServedNetwork::GainsFromNarrowProducts), else float32.
  // - int8: as bf16, but on the CPU the weights of language models are int8, and both weights and rows of classifiers
  //   if the network gains and the processor has dot products of bytes, but no tiles.
  std::string precision = "fp32";
  // Threads for loading, and for one step or batch; 0: one per core.
  int threads = 0;
  // Devices that the model runs on, without duplicates; empty: the CPU.
  std::vector<WorkerDevice> devices = {};
  // Required if `devices` has GPUs; null in a CPU-only build. Must outlive the loaded model.
  const GpuBackends* gpus = nullptr;

  // Returns at least one device. CPU devices without a thread count of their own get `threads`.
  std::vector<WorkerDevice> DevicesOrCpu() const {
    std::vector<WorkerDevice> all = devices;
    if (all.empty()) all.push_back({.kind = DeviceKind::kCpu});
    for (WorkerDevice& device : all) {
      if (device.threads == 0) device.threads = threads;
    }
    return all;
  }
};

// The memory that a model's weights take.
struct WeightSizes {
  int64_t loading_bytes = 0;  // on the host, while it is loaded
  int64_t host_bytes = 0;     // on the host, once it is loaded
  int64_t gpu_bytes = 0;      // on each GPU that runs it
};

// The size of numbers in this precision. In int8, a scale of 4 bytes belongs to 64 numbers.
inline int64_t WeightBytes(int64_t parameters, std::string_view precision) {
  if (precision == "int8") return parameters + parameters / 16;
  return parameters * (precision == "bf16" ? 2 : 4);
}

// Puts models on GPUs. Only builds with GPU support implement it. Thread-safe.
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
  virtual int64_t ImageGraphBytes(const ImageShape& image, int64_t classes) const = 0;
  virtual int64_t DocumentGraphBytes(int64_t classes) const = 0;
};

// The GPUs of this machine; none without a driver. This and MakeCudaBackends are only in builds with CUDA
// (LONGSHORT_CUDA).
Gpus FindCudaGpus();

// Creates the backends. Also makes LibTorch compute float32 products in float32 on GPUs (no TF32), and sum in float32.
// `loss` is notified if a GPU fails.
std::shared_ptr<const GpuBackends> MakeCudaBackends(std::shared_ptr<GpuLoss> loss);

}  // namespace longshort::models
