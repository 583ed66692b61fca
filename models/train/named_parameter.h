// A trained tensor, or another that a run keeps, under its name.
#pragma once

#include <string>

#include "ATen/core/Tensor.h"

namespace longshort {

struct NamedParameter {
  std::string name;  // as in model.safetensors
  at::Tensor value;  // float32; a leaf that collects gradients if it is trained
};

}  // namespace longshort
