#include "models/layers/linear.h"

#include <optional>
#include <string_view>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/core/dispatch/Dispatcher.h"
#include "ATen/native/quantized/PackedParams.h"
#include "c10/util/Exception.h"

namespace longshort::models {
namespace {

// Calls a LibTorch operator by name: products with packed weights have no functions in its headers.
template <typename Function>
auto FindOperator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

// oneDNN's bfloat16 products. Throws on a processor without AVX-512. With AVX-512 but without bfloat16 instructions,
// they are slower than float32 products.
class BFloat16Matrix final : public PackedMatrix {
 public:
  explicit BFloat16Matrix(const at::Tensor& weight) {
    static const auto pack =
        FindOperator<at::Tensor(const at::Tensor&, std::optional<c10::SymInt>)>("mkldnn::_reorder_linear_weight");
    constexpr int64_t kFewestRows = 1;  // the memory order is chosen for this number of rows, and works for any
    packed_ = pack.call(weight, c10::SymInt(kFewestRows));
  }

  at::Tensor Multiply(const at::Tensor& rows) const override {
    static const auto product = FindOperator<at::Tensor(
        const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
        c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>)>("mkldnn::_linear_pointwise");
    static const c10::List<std::optional<at::Scalar>> no_numbers;
    return product
        .call(rows.to(at::kBFloat16), packed_, /*bias=*/std::nullopt, /*then=*/"none", no_numbers, /*algorithm=*/"")
        .to(at::kFloat);
  }

 private:
  at::Tensor packed_;
};

// FBGEMM's float16 products. Throws if the processor has no AVX2.
class Float16Matrix final : public PackedMatrix {
 public:
  explicit Float16Matrix(const at::Tensor& weight) {
    static const auto pack =
        FindOperator<c10::intrusive_ptr<LinearPackedParamsBase>(at::Tensor, std::optional<at::Tensor>)>(
            "quantized::linear_prepack_fp16");
    packed_ = pack.call(weight.to(at::kFloat).contiguous(), /*bias=*/std::nullopt);
  }

  at::Tensor Multiply(const at::Tensor& rows) const override { return packed_->apply_dynamic(rows); }

 private:
  c10::intrusive_ptr<LinearPackedParamsBase> packed_;
};

template <typename Matrix>
std::shared_ptr<const PackedMatrix> PackAs(const at::Tensor& weight) {
  try {
    return std::make_shared<Matrix>(weight);
  } catch (const c10::Error&) {
    return nullptr;  // the processor lacks the instructions
  }
}

bool IsInRangeOfFloat16(const at::Tensor& weight) {
  constexpr double kLargest = 65504;
  return at::max(at::abs(weight)).item<double>() <= kLargest;
}

}  // namespace

std::shared_ptr<const PackedMatrix> Pack(const at::Tensor& weight) {
  if (weight.scalar_type() == at::kBFloat16) {
    if (__builtin_cpu_supports("avx512bf16")) {
      if (auto matrix = PackAs<BFloat16Matrix>(weight)) return matrix;
    }
    return IsInRangeOfFloat16(weight) ? PackAs<Float16Matrix>(weight) : nullptr;
  }
  const bool is_same = at::equal(weight.to(at::kHalf).to(at::kFloat), weight);
  // Infinities would compare equal, but the library converts them to finite numbers, in `weight` too.
  return is_same && IsInRangeOfFloat16(weight) ? PackAs<Float16Matrix>(weight) : nullptr;
}

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

void TensorMove::Move(at::Tensor& tensor, std::optional<at::ScalarType> type) {
  if (!tensor.defined()) return;
  const at::ScalarType wanted = type.value_or(tensor.scalar_type());
  if (tensor.use_count() == 1) {
    tensor = tensor.to(device_, wanted);
    return;
  }
  const auto [moved, is_new] = shared_.try_emplace({tensor.unsafeGetTensorImpl(), wanted});
  if (is_new) moved->second = {.from = tensor, .to = tensor.to(device_, wanted)};
  tensor = moved->second.to;
}

void TensorMove::Move(Linear& map, std::optional<at::ScalarType> type) {
  Move(map.weight, type);
  Move(map.bias, type);
}

void TensorMove::Move(LayerNorm& norm, std::optional<at::ScalarType> type) {
  Move(norm.gain, type);
  Move(norm.bias, type);
}

at::Tensor FeedForward::operator()(const at::Tensor& rows) const { return out(at::gelu(in(rows))); }

}  // namespace longshort::models
