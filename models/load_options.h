// Loading of a model, in plain types: what it reads, its options, and the memory that weights take.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/worker_device.h"

namespace longshort::models {

class GpuBackends;

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

}  // namespace longshort::models
