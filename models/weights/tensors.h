// The tensors that a model's weights file must contain, and their values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;
  bool is_trained = true;
};

// Appends the tensors of one part of a model, whose names begin with `prefix`.
class TensorList final {
 public:
  TensorList(std::string prefix, std::vector<TensorShape>& tensors) : prefix_(std::move(prefix)), tensors_(tensors) {}

  void Add(std::string_view name, std::vector<int64_t> shape, bool is_trained = true) {
    tensors_.push_back({absl::StrCat(prefix_, std::string(name)), std::move(shape), is_trained});
  }
  // Adds a weight of this shape, and a bias of its first dimension: for a linear map, a convolution or (one dimension)
  // a norm.
  void AddAffine(const std::string& name, std::vector<int64_t> shape, bool bias = true) {
    const int64_t out = shape.front();
    Add(absl::StrCat(name, ".weight"), std::move(shape));
    if (bias) Add(absl::StrCat(name, ".bias"), {out});
  }
  TensorList Sub(const std::string& name) { return TensorList(absl::StrCat(prefix_, name, "."), tensors_); }

 private:
  std::string prefix_;
  std::vector<TensorShape>& tensors_;
};

// Number of trained elements of all tensors.
int64_t CountParameters(absl::Span<const TensorShape> tensors);

// Checks that the file contains these tensors, each with its shape and with type F32, F16 or BF16, and no others except
// those of a buffer's type.
// Errors: INVALID_ARGUMENT naming the file and a tensor that is missing or unknown, or has a wrong shape or type.
absl::Status CheckTensors(const SafetensorsFile& file, absl::Span<const TensorShape> expected);

// Whether ReadAsFloat32 accepts this type: F32, F16 or BF16.
bool IsFloatType(DataType type);

// Reads all elements of a tensor, row-major, as float32. F16 and BF16 are converted exactly, including infinities and
// NaNs. Errors: INVALID_ARGUMENT if the type is not a float type, or if `values` does not have one place per element;
// UNAVAILABLE if the file cannot be read.
absl::Status ReadAsFloat32(const SafetensorsFile& file, const StoredTensor& tensor, absl::Span<float> values);

// Errors: INVALID_ARGUMENT naming the file, the tensor, the number of its values that are infinite or NaN, and the
// index of the first one.
absl::Status CheckFinite(const SafetensorsFile& file, const std::string& tensor, absl::Span<const float> values);

}  // namespace longshort::models
