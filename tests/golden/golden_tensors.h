// Tensors of a golden case's file, as values of one type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "models/weights/safetensors.h"

namespace longshort {

// A tensor's values, row-major, with its shape.
template <typename Value>
struct Values {
  std::vector<int64_t> shape;
  std::vector<Value> values;
};

// REQUIRES: Value is what `type` stores. Errors: INVALID_ARGUMENT naming the tensor that is missing or has another type
// or number of dimensions.
template <typename Value>
absl::StatusOr<Values<Value>> ReadValues(const models::SafetensorsFile& file, const std::string& name,
                                         models::DataType type, size_t dimensions) {
  const models::StoredTensor* tensor = file.Find(name);
  if (tensor == nullptr) return absl::InvalidArgumentError(absl::StrCat(file.name(), " has no tensor ", name));
  if (tensor->type != type || tensor->shape.size() != dimensions) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s is %s [%s], not %s of %d dimensions", file.name(), name,
                                                      std::string(models::DataTypeName(tensor->type)),
                                                      absl::StrJoin(tensor->shape, ", "),
                                                      std::string(models::DataTypeName(type)), dimensions));
  }
  Values<Value> result{tensor->shape, std::vector<Value>(tensor->bytes / sizeof(Value))};
  LS_RETURN_IF_ERROR(file.bytes().Read(
      tensor->offset, absl::MakeSpan(reinterpret_cast<std::byte*>(result.values.data()), tensor->bytes)));
  return result;
}

}  // namespace longshort
