// Which devices have a backend of the language model.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "models/gpu/model_gpu.h"
#include "models/gpu_backends.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"
#include "models/worker_device.h"

namespace longshort::models {

// Prepares the decoder, whose tensors are on the host, for a device: matrices that meet tokens come into the order in
// which the device multiplies them. `between` is called again and again meanwhile, and may throw.
// `gpus` prepares it for a GPU; null: there are none.
// Throws what LibTorch throws. Errors: UNIMPLEMENTED for a kind of device that has no backend.
absl::StatusOr<PreparedDevice> PrepareDecoder(
    Decoder& decoder, const WorkerDevice& device, const GpuBackends* gpus = nullptr,
    const std::function<void()>& between = [] {});

// The same for the CPU and for a GPU. Pages hold float32 numbers, or bfloat16 ones if such are the decoder's matrices
// that meet tokens. What only position tables are made of is dropped.

PreparedDevice PrepareForCpu(Decoder& decoder, const std::function<void()>& between);
// Brings the decoder to the GPU. Errors: UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder& decoder, ModelGpu gpu, const std::function<void()>& between);

}  // namespace longshort::models
