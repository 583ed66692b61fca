// The language model's backend on a GPU: cache pages in its memory, kernels of models/kernels/cuda.
#pragma once

#include <functional>
#include <memory>

#include "ATen/core/Tensor.h"
#include "absl/status/statusor.h"
#include "models/gpu/gpu_device.h"
#include "models/gpu/gpu_loss.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"

namespace longshort {

// The GPU of a model.
struct ModelGpu {
  // Where LibTorch's tensors on it are.
  at::Device tensors;
  // A stream of its own for one worker. Errors: those of GpuDevice.
  std::function<absl::StatusOr<std::unique_ptr<GpuDevice>>()> open;
  // Told once it is lost.
  std::shared_ptr<GpuLoss> loss;
  // Steps of so many rows at the most are graphs, which are captured when there are pages. Larger ones take so long
  // that it does not matter what their calls cost.
  int64_t most_graph_rows = 512;
};

// Pages hold float32 numbers, or bfloat16 ones if such are the decoder's matrices that meet tokens. Brings the decoder
// to the GPU, and drops what only position tables are made of.
// Throws what LibTorch throws. Errors: those of GpuDevice; UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<std::unique_ptr<LanguageModelBackend>> MakeGpuBackend(Decoder& decoder, ModelGpu gpu,
                                                                     const std::function<void()>& between);

}  // namespace longshort
