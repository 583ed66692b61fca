// The layers of a language model's step on a GPU.
//
// The same function as DecoderLayer's (decoder.h), which is the plain form, in about 10 kernels per layer. Between
// LibTorch's products, kernels read and write all rows:
//   - The residual branch is float32. A sum is computed by the norm behind it, or with the requested rows at the end.
//   - Products have the type of the matrices, in and out. The kernels that read a product add its bias.
//   - DualLN is computed where keys and values are written to pages.
#pragma once

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "models/device/model_gpu.h"
#include "models/families/language_model/gpu_decoder.h"
#include "models/families/language_model/gpu_step.h"

namespace longshort::models {

// Device addresses of a worker's pages.
struct GpuCache {
  char* window = nullptr;
  char* segment = nullptr;
  float* open_chunks = nullptr;
  char* zero_window = nullptr;  // one page each
  char* zero_segment = nullptr;
};

// Sets every row of the zero pages: keys and values of zero memory. Throws as WorkerGpu does.
void WriteZeroPages(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache);

// Queues all layers of a step. REQUIRES: the step's numbers are queued in `memory`.
//   logits  [logit rows, V] float32, to write; undefined if there are no such rows
void QueueLayers(const GpuDecoder& decoder, const WorkerGpu& device, const GpuCache& cache, const GpuStep& step,
                 StepMemory& memory, at::Tensor logits);

}  // namespace longshort::models
