#include "models/ops/products/packed_matrix.h"

#include <exception>
#include <optional>

#include "ATen/Functions.h"
#include "ATen/core/dispatch/Dispatcher.h"
#include "ATen/cpu/Utils.h"
#include "ATen/native/CPUBlas.h"
#include "ATen/native/quantized/PackedParams.h"
#include "c10/util/Exception.h"
#include "models/ops/products/panel_matrix.h"
#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"

namespace longshort::models {
namespace {

// Calls a LibTorch operator by name: products with packed weights have no functions in its headers.
template <typename Function>
auto FindOperator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

// FBGEMM's float16 products. Throws if the processor has no AVX2.
class Float16Matrix final : public PackedMatrix {
 public:
  explicit Float16Matrix(const at::Tensor& weight) : PackedMatrix(weight.size(0), weight.size(1)) {
    static const auto pack =
        FindOperator<c10::intrusive_ptr<LinearPackedParamsBase>(at::Tensor, std::optional<at::Tensor>)>(
            "quantized::linear_prepack_fp16");
    packed_ = pack.call(weight.to(at::kFloat).contiguous(), /*bias=*/std::nullopt);
  }

  at::Tensor Multiply(const at::Tensor& rows, const ProductEnd& end) const override {
    at::Tensor product = packed_->apply_dynamic(rows);
    if (end.bias.defined()) product.add_(end.bias);
    if (end.gelu) product = at::gelu(product);
    return end.added.defined() ? product.add_(end.added) : product;
  }

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

// Whether the processor has bfloat16 instructions, ATEN_CPU_CAPABILITY allows AVX-512, and ONEDNN_MAX_CPU_ISA the
// library's kernels.
bool CanMultiplyBFloat16() {
  static const bool can = [] {
    if (cpu::BestInstructionSet() != cpu::InstructionSet::kAvx512 || !__builtin_cpu_supports("avx512bf16"))
      return false;
    try {
      BFloat16Panels(at::zeros({1, 2}, at::kBFloat16), /*widens=*/false).Multiply(at::zeros({1, 2}), {});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }();
  return can;
}

}  // namespace

at::Tensor AsMatrix(const at::Tensor& rows) {
  const at::Tensor matrix = rows.reshape({-1, rows.size(-1)});
  return matrix.stride(1) == 1 ? matrix : matrix.contiguous();
}

bool HasBFloat16Tiles() {
  static const bool has = cpu::BestInstructionSet() == cpu::InstructionSet::kAvx512 &&
                          at::native::cpublas::could_pack(at::kBFloat16) && at::cpu::init_amx();
  return has;
}

std::shared_ptr<const PackedMatrix> Pack(const at::Tensor& weight, at::ScalarType type) {
  if (type == at::kQInt8) {
    return cpu::HasInt8DotProducts() ? std::make_shared<Int8Panels>(weight, Int8Panels::Rows::kInt8) : nullptr;
  }
  if (type == at::kChar) {
    return std::make_shared<Int8Panels>(weight,
                                        HasBFloat16Tiles() ? Int8Panels::Rows::kBFloat16 : Int8Panels::Rows::kFloat);
  }
  if (type == at::kBFloat16) {
    const at::Tensor rounded = weight.to(at::kBFloat16);
    if (HasBFloat16Tiles()) return std::make_shared<BFloat16Panels>(rounded, /*widens=*/false);
    if (CanMultiplyBFloat16()) {
      // Intel's AVX-512 multiplies bfloat16 numbers at half of the rate of float32's.
      return std::make_shared<BFloat16Panels>(rounded, /*widens=*/__builtin_cpu_is("intel"));
    }
    return IsInRangeOfFloat16(rounded) ? PackAs<Float16Matrix>(rounded) : nullptr;
  }
  const bool is_same = at::equal(weight.to(at::kHalf).to(at::kFloat), weight);
  // Infinities would compare equal, but the library converts them to finite numbers, in `weight` too.
  return is_same && IsInRangeOfFloat16(weight) ? PackAs<Float16Matrix>(weight) : nullptr;
}

}  // namespace longshort::models
