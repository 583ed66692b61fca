// Random weights of a classifier, for training from nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/train/named_parameter.h"
#include "models/weights/tensor_shapes.h"

namespace longshort {

// Matrices and kernels normal with deviation 1/sqrt(inputs of one output), embeddings and position tables normal with
// deviation 0.02, gains and running variances 1, biases and running means 0. `seed` decides every value. All but the
// running statistics are trained.
std::vector<NamedParameter> InitialValues(absl::Span<const TensorShape> tensors, uint64_t seed);

}  // namespace longshort
