// LibTorch tensors that are read from or written to safetensors files.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

// What WriteSafetensors writes of a contiguous tensor, which must outlive the result: float16, or else float32.
NamedTensor AsNamed(const std::string& name, const at::Tensor& value);

// Reads the weights of a network while it is built.
class TensorReader final {
 public:
  // The file must outlive the reader.
  explicit TensorReader(const SafetensorsFile& file) : file_(file) {}

  // Returns a float32 copy of a tensor that CheckTensors has accepted. Throws what LibTorch throws, and
  // std::runtime_error if the tensor cannot be read or has values that are not finite; then status() has the reason.
  at::Tensor Read(const std::string& name);

  // Throws, as Read does, if reading of the file's StoredBytes was stopped. For long work after the last tensor.
  void CheckStop();

  // The reason for which Read threw. Errors: those of ReadAsFloat32 and CheckFinite.
  const absl::Status& status() const { return status_; }

  // Call after the last tensor. Errors: that of StoredBytes::CheckUnchanged.
  absl::Status Finish() const { return file_.bytes().CheckUnchanged(); }

 private:
  const SafetensorsFile& file_;
  absl::Status status_;
};

// Returns a stored tensor by its name.
using TensorSource = std::function<at::Tensor(const std::string& name)>;

// Builds parts of layers from the tensors whose names begin with a prefix. The source must outlive this object.
class NamedTensors final {
 public:
  explicit NamedTensors(const TensorSource& source, std::string prefix = "")
      : source_(source), prefix_(std::move(prefix)) {}

  NamedTensors Below(absl::string_view prefix) const { return NamedTensors(source_, absl::StrCat(prefix_, prefix)); }

  at::Tensor operator()(absl::string_view name) const { return source_(absl::StrCat(prefix_, name)); }
  at::Tensor Weight(absl::string_view name) const { return (*this)(absl::StrCat(name, ".weight")); }
  at::Tensor Bias(absl::string_view name) const { return (*this)(absl::StrCat(name, ".bias")); }
  Linear MakeLinear(absl::string_view name) const { return {.weight = Weight(name), .bias = Bias(name)}; }
  LayerNorm MakeNorm(absl::string_view name, double epsilon = LayerNorm().epsilon) const {
    return {.gain = Weight(name), .bias = Bias(name), .epsilon = epsilon};
  }

 private:
  const TensorSource& source_;
  std::string prefix_;
};

}  // namespace longshort::models
