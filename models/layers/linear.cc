#include "models/layers/linear.h"

#include <utility>

#include "ATen/Functions.h"

namespace longshort {

at::Tensor Linear::operator()(const at::Tensor& rows) const {
  if (packed == nullptr && weight.scalar_type() == rows.scalar_type())
    return at::linear(rows, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  at::Tensor product =
      packed != nullptr ? packed->Multiply(rows) : at::linear(rows.to(at::kBFloat16), weight).to(at::kFloat);
  return bias.defined() ? product.add_(bias) : product;
}

Linear Linear::Packed() const {
  if (packed != nullptr) return *this;
  if (auto matrix = Pack(weight)) return {.weight = {}, .bias = bias, .packed = std::move(matrix)};
  return {.weight = weight.to(at::kFloat), .bias = bias};
}

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  const at::ScalarType type = rows.scalar_type();
  return at::layer_norm(rows, {rows.size(-1)}, gain.to(type), bias.to(type), epsilon);
}

}  // namespace longshort
