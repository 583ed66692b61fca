// Stored tensors as LibTorch's.
#pragma once

#include <string>

#include "ATen/core/Tensor.h"
#include "models/weights/safetensors.h"

namespace longshort {

// A float32 copy of a tensor that CheckTensors has found there. Throws what LibTorch throws.
at::Tensor ReadTensor(const SafetensorsFile& file, const std::string& name);

}  // namespace longshort
