#include "models/ops/layers/linear.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/Parallel.h"
#include "ATen/TensorOperators.h"
#include "ATen/core/grad_mode.h"
#include "models/ops/products/panel_matrix.h"
#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"
#include "models/weights/tensors.h"

namespace longshort::models {

at::Tensor Linear::operator()(const at::Tensor& rows, const at::Tensor& added) const {
  if (packed != nullptr) return packed->Multiply(rows, {.bias = bias, .added = added});
  if (added.defined()) return (*this)(rows).add_(added);
  if (weight.scalar_type() == rows.scalar_type())
    return at::linear(rows, weight, bias.defined() ? c10::make_optional(bias) : c10::nullopt);
  at::Tensor product = at::linear(rows.to(at::kBFloat16), weight).to(at::kFloat);
  return bias.defined() ? product.add_(bias) : product;
}

at::Tensor Linear::Gelu(const at::Tensor& rows) const {
  return packed != nullptr ? packed->Multiply(rows, {.bias = bias, .gelu = true}) : at::gelu((*this)(rows));
}

at::Tensor Linear::Relu(const at::Tensor& rows) const {
  // A GPU's library has products with this activation.
  if (packed == nullptr && !rows.is_cpu() && rows.dim() == 2) return at::_addmm_activation(bias, rows, weight.t());
  return at::relu((*this)(rows));
}

Linear Linear::InPanels() const {
  if (packed != nullptr || cpu::BestInstructionSet() == cpu::InstructionSet::kBaseline) return *this;
  return {.weight = {}, .bias = bias, .packed = std::make_shared<FloatPanels>(weight.to(at::kFloat))};
}

Linear Linear::Packed(at::ScalarType type) const {
  if (packed != nullptr) return *this;
  if (auto matrix = Pack(weight, type)) return {.weight = {}, .bias = bias, .packed = std::move(matrix)};
  return {.weight = weight.to(at::kFloat), .bias = bias};
}

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  const at::ScalarType type = rows.scalar_type();
  const bool computes_gradients =
      at::GradMode::is_enabled() && (rows.requires_grad() || gain.requires_grad() || bias.requires_grad());
  if (rows.is_cpu() && type == at::kFloat && gain.scalar_type() == type && !computes_gradients) return Normalized(rows);
  return at::layer_norm(rows, {rows.size(-1)}, gain.to(type), bias.to(type), epsilon);
}

at::Tensor LayerNorm::Normalized(const at::Tensor& rows) const {
  const at::Tensor matrix = AsMatrix(rows);
  at::Tensor normalized = at::empty(rows.sizes(), rows.options());
  const cpu::RowNorm norm{.gain = gain.const_data_ptr<float>(),
                          .bias = bias.const_data_ptr<float>(),
                          .epsilon = static_cast<float>(epsilon)};
  const int64_t width = matrix.size(1);
  const float* const from = matrix.const_data_ptr<float>();
  float* const to = normalized.mutable_data_ptr<float>();
  constexpr int64_t kWorthAThread = 1 << 15;
  at::parallel_for(0, matrix.size(0), kWorthAThread / width + 1, [&](int64_t begin, int64_t end) {
    cpu::NormalizeFloats(norm, width, {from + begin * matrix.stride(0), matrix.stride(0)}, end - begin,
                         {to + begin * width, width});
  });
  return normalized;
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
  if (packed_type_ && type && map.weight.defined()) {
    const auto [packed, is_new] = packed_.try_emplace(map.weight.unsafeGetTensorImpl());
    if (is_new)
      packed->second = {.from = map.weight,
                        .to = *packed_type_ == at::kFloat ? map.InPanels() : map.Packed(*packed_type_)};
    map.weight = packed->second.to.weight;
    map.packed = packed->second.to.packed;
  }
  Move(map.weight, type);
  Move(map.bias, type);
}

void TensorMove::Move(LayerNorm& norm, std::optional<at::ScalarType> type) {
  Move(norm.gain, type);
  Move(norm.bias, type);
}

Linear TensorMove::Join(std::initializer_list<Linear*> maps) {
  if (!joins_maps_) return {};
  Linear& first = **maps.begin();
  const auto [made, is_new] = joined_.try_emplace(first.weight.unsafeGetTensorImpl());
  Linear& joined = made->second.to;
  if (is_new) {
    made->second.from = first.weight;
    std::vector<at::Tensor> weights, biases;
    int64_t outputs = 0;
    for (const Linear* const map : maps) {
      weights.push_back(map->weight);
      biases.push_back(map->bias);
      outputs += map->outputs();
    }
    weights.push_back(at::zeros({(8 - outputs % 8) % 8, first.inputs()}, first.weight.options()));
    biases.push_back(at::zeros({weights.back().size(0)}, first.bias.options()));
    joined = {.weight = at::cat(weights), .bias = at::cat(biases)};
  }
  int64_t output = 0;
  for (Linear* const map : maps) {
    map->weight = joined.weight.narrow(0, output, map->outputs());
    output += map->outputs();
  }
  return joined;
}

void FeedForward::MoveBy(TensorMove& move) { move(in, out); }

NamedTensor AsNamed(const std::string& name, const at::Tensor& value) {
  return {.name = name,
          .type = value.scalar_type() == at::kHalf ? DataType::kF16 : DataType::kF32,
          .shape = value.sizes().vec(),
          .data = {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()}};
}

at::Tensor TensorReader::Read(const std::string& name) {
  const StoredTensor& stored = *file_.Find(name);
  at::Tensor tensor = at::empty(stored.shape, at::kFloat);
  const absl::Span<float> values(tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel()));
  status_ = ReadAsFloat32(file_, stored, values);
  if (status_.ok()) status_ = CheckFinite(file_, name, values);
  if (!status_.ok()) throw std::runtime_error("a stored tensor cannot be used");
  return tensor;
}

void TensorReader::CheckStop() {
  status_ = file_.bytes().CheckStop();
  if (!status_.ok()) throw std::runtime_error("loading was stopped");
}

}  // namespace longshort::models
