// ItemAttention on a GPU, by the kernels of models/gpu.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "models/attention/item_attention.h"
#include "models/gpu/model_gpu.h"

namespace longshort {

// Opens a stream. `head_width`: of the model's widest heads.
// Errors: those of GpuDevice; UNIMPLEMENTED for heads that are too wide for the kernels.
absl::StatusOr<std::unique_ptr<ItemAttention>> MakeGpuItemAttention(const ModelGpu& gpu, int64_t head_width);

}  // namespace longshort
