// Writing the safetensors format (safetensors.h), for the trainer and for tests.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/weights/safetensors.h"

namespace longshort {

// A tensor to write. `data` is read during the call only.
struct NamedTensor {
  std::string name;
  DataType type = DataType::kF32;
  std::vector<int64_t> shape;
  absl::Span<const std::byte> data;
};

// Writes the file as WriteFileAtomically does. Tensors are laid out by falling size of their element, so that each lies
// aligned; the same input gives the same bytes. Errors: INVALID_ARGUMENT for a name that stands twice or is not UTF-8,
// or data that is not as long as shape and type say; those of WriteFileAtomically.
absl::Status WriteSafetensors(const std::string& path, absl::Span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace longshort
