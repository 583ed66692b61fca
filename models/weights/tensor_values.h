// Values of a stored tensor, whatever its type and alignment.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/weights/safetensors.h"

namespace longshort {

// Whether ReadAsFloat32 takes this type: F32, F16 or BF16.
bool IsFloatType(DataType type);

// Reads all elements of a tensor of the file, row-major, as float32; F16 and BF16 widen exactly (infinities and NaNs
// stay what they are). Errors: INVALID_ARGUMENT if the type is no float type or `values` is not as long as the tensor
// has elements; UNAVAILABLE if the file cannot be read.
absl::Status ReadAsFloat32(const SafetensorsFile& file, const StoredTensor& tensor, absl::Span<float> values);

// Errors: INVALID_ARGUMENT naming the file, the tensor, how many of its values are infinite or not a number, and where
// the first one is.
absl::Status CheckFinite(const SafetensorsFile& file, const std::string& tensor, absl::Span<const float> values);

}  // namespace longshort
