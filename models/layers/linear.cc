#include "models/layers/linear.h"

#include "ATen/Functions.h"

namespace longshort {

at::Tensor Linear::operator()(const at::Tensor& rows) const {
  if (weight.scalar_type() != at::kBFloat16)
    return at::linear(rows, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  at::Tensor product = at::linear(rows.to(at::kBFloat16), weight).to(at::kFloat);
  return bias.defined() ? product.add_(bias) : product;
}

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  return at::layer_norm(rows, {rows.size(-1)}, gain, bias, epsilon);
}

}  // namespace longshort
