#include "models/layers/linear.h"

#include <optional>
#include <string_view>

#include "ATen/Functions.h"
#include "ATen/core/dispatch/Dispatcher.h"
#include "c10/util/Exception.h"

namespace longshort {
namespace {

// LibTorch's way to oneDNN's products with packed weights, which has no function in its headers.
template <typename Function>
auto FindOperator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

at::Tensor Pack(const at::Tensor& weight) {
  static const auto pack =
      FindOperator<at::Tensor(const at::Tensor&, std::optional<c10::SymInt>)>("mkldnn::_reorder_linear_weight");
  constexpr int64_t kFewestRows = 1;  // the order is chosen for a number of rows, and serves any
  return pack.call(weight, c10::SymInt(kFewestRows));
}

at::Tensor ProductWithPacked(const at::Tensor& rows, const at::Tensor& packed) {
  static const auto product =
      FindOperator<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
                              c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>)>(
          "mkldnn::_linear_pointwise");
  static const c10::List<std::optional<at::Scalar>> no_numbers;
  return product.call(rows, packed, /*bias=*/std::nullopt, /*then=*/"none", no_numbers, /*algorithm=*/"");
}

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& rows) const {
  if (!packed.defined() && weight.scalar_type() != at::kBFloat16)
    return at::linear(rows, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  const at::Tensor halves = rows.to(at::kBFloat16);
  at::Tensor product =
      (packed.defined() ? ProductWithPacked(halves, packed) : at::linear(halves, weight)).to(at::kFloat);
  return bias.defined() ? product.add_(bias) : product;
}

Linear Linear::Packed() const {
  if (packed.defined() || weight.scalar_type() != at::kBFloat16) return *this;
  try {
    return {.weight = {}, .bias = bias, .packed = Pack(weight)};
  } catch (const c10::Error&) {
    return *this;  // the processor lacks what the product needs
  }
}

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  return at::layer_norm(rows, {rows.size(-1)}, gain, bias, epsilon);
}

}  // namespace longshort
