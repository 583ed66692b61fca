// Which tensors a weights file must hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/weights/safetensors.h"

namespace longshort {

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;
};

// Elements of all the tensors together.
int64_t CountElements(absl::Span<const TensorShape> tensors);

// Checks that the file holds exactly these tensors, each of its shape and of type F32, F16 or BF16.
// Errors: INVALID_ARGUMENT naming the file and the tensor that is missing, unknown, or of another shape or type.
absl::Status CheckTensors(const SafetensorsFile& file, absl::Span<const TensorShape> expected);

}  // namespace longshort
