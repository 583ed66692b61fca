// Reads the weights that a training run wrote, as input of the training modules.
#pragma once

#include <vector>

#include "ATen/Functions.h"
#include "models/train/parameters.h"
#include "models/weights/safetensors.h"
#include "models/weights/tensors.h"

namespace longshort::models {

// All tensors of a file of floats, as float32.
inline std::vector<NamedParameter> TrainedWeights(const SafetensorsFile& file) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, stored] : file.tensors()) {
    const at::Tensor value = at::empty(stored.shape);
    ReadAsFloat32(file, stored, {value.mutable_data_ptr<float>(), static_cast<size_t>(value.numel())}).IgnoreError();
    parameters.push_back({name, value});
  }
  return parameters;
}

// Element `index` of a float32 tensor, row-major.
inline float At(const at::Tensor& tensor, int64_t index) { return tensor.const_data_ptr<float>()[index]; }

}  // namespace longshort::models
