// Values of a stored tensor, whatever its type and alignment.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/weights/safetensors.h"

namespace longshort {

// Whether CopyAsFloat32 takes this type: F32, F16 or BF16.
bool IsFloatType(DataType type);

// Copies all elements, row-major, as float32; F16 and BF16 widen exactly (infinities and NaNs stay what they are).
// Errors: INVALID_ARGUMENT if the type is no float type or `values` is not as long as the tensor has elements.
absl::Status CopyAsFloat32(const TensorView& tensor, absl::Span<float> values);

}  // namespace longshort
