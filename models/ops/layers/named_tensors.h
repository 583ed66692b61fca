// Looks up a model's tensors by their names in model.safetensors, and builds parts of layers from them.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ATen/core/Tensor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/ops/layers/linear.h"

namespace longshort::models {

// Returns a stored tensor by its name.
using TensorSource = std::function<at::Tensor(const std::string& name)>;

// The tensors whose names begin with a prefix. The source must outlive this object.
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
