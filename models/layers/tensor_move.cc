#include "models/layers/tensor_move.h"

namespace longshort {

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

}  // namespace longshort
