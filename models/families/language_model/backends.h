// Prepares a language model for a device: the entry points of all backends.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "models/device/model_gpu.h"
#include "models/families/language_model/backend.h"
#include "models/families/language_model/decoder.h"
#include "models/gpu_backends.h"
#include "models/worker_device.h"

namespace longshort::models {

// Prepares the decoder, whose tensors are on the host, for a device: its matrices in the device's memory order, and
// tables that depend on the weights alone. Calls `between` repeatedly, which may throw.
// `gpus` prepares it for a GPU; null: no GPU support.
// Throws what LibTorch throws. Errors: UNIMPLEMENTED for a kind of device that has no backend.
absl::StatusOr<PreparedDevice> PrepareDecoder(
    Decoder decoder, const WorkerDevice& device, const GpuBackends* gpus = nullptr,
    const std::function<void()>& between = [] {});

// The same for the CPU and for a GPU. Pages hold bfloat16 if the decoder's matrices that multiply tokens do, else
// float32.

PreparedDevice PrepareForCpu(Decoder decoder, const std::function<void()>& between);
// Errors: UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<PreparedDevice> PrepareForGpu(Decoder decoder, ModelGpu gpu, const std::function<void()>& between);

}  // namespace longshort::models
