// A stored tensor's bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "models/weights/safetensors.h"

namespace longshort::models {

// None if they cannot be read.
inline std::vector<std::byte> BytesOf(const SafetensorsFile& file, const StoredTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  return file.bytes().Read(tensor.offset, absl::MakeSpan(bytes)).ok() ? bytes : std::vector<std::byte>();
}

}  // namespace longshort::models
