#include "models/attention/linear_weights.h"

#include "ATen/Functions.h"

namespace longshort {

at::Tensor LinearWeights::operator()(const at::Tensor& rows) const {
  if (weight.scalar_type() == at::kFloat)
    return at::linear(rows, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  at::Tensor product = at::linear(rows.to(weight.scalar_type()), weight).to(at::kFloat);
  return bias.defined() ? product.add_(bias) : product;
}

at::Tensor NormWeights::operator()(const at::Tensor& rows) const {
  return at::layer_norm(rows, {rows.size(-1)}, gain, bias, 1e-5);
}

}  // namespace longshort
