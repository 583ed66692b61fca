#include "models/ops/layers/stored_tensor.h"

#include <stdexcept>

#include "ATen/Functions.h"
#include "models/weights/tensors.h"

namespace longshort::models {

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
