// The language model's backend on a GPU: cache pages in its memory, kernels of models/gpu.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "models/gpu/model_gpu.h"
#include "models/language_model/backend.h"
#include "models/language_model/decoder.h"

namespace longshort {

// Pages hold float32 numbers, or bfloat16 ones if such are the decoder's matrices that meet tokens. Brings the decoder
// to the GPU, and drops what only position tables are made of.
// Throws what LibTorch throws. Errors: those of GpuDevice; UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<std::unique_ptr<LanguageModelBackend>> MakeGpuBackend(Decoder& decoder, ModelGpu gpu,
                                                                     const std::function<void()>& between);

}  // namespace longshort
