#include "models/ops/layers/tensor_move.h"

namespace longshort::models {

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

void FeedForward::MoveBy(TensorMove& move) { move(in, out); }

}  // namespace longshort::models
