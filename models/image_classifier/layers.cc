#include "models/image_classifier/layers.h"

#include "ATen/Functions.h"

namespace longshort {

at::Tensor Linear::operator()(const at::Tensor& rows) const { return at::linear(rows, weight, bias); }

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  return at::layer_norm(rows, {rows.size(-1)}, gain, bias, epsilon);
}

at::Tensor FeedForward::operator()(const at::Tensor& rows) const { return out(at::gelu(in(rows))); }

}  // namespace longshort
