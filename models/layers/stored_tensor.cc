#include "models/layers/stored_tensor.h"

#include "ATen/Functions.h"
#include "models/weights/tensor_values.h"

namespace longshort {

at::Tensor TensorReader::Read(const std::string& name) {
  const StoredTensor& stored = *file_.Find(name);
  at::Tensor tensor = at::zeros(stored.shape, at::kFloat);
  if (!first_error_.ok()) return tensor;
  first_error_ = ReadAsFloat32(file_, stored, {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  return first_error_.ok() ? tensor : tensor.zero_();
}

absl::Status TensorReader::Finish() const { return first_error_.ok() ? file_.bytes().CheckUnchanged() : first_error_; }

}  // namespace longshort
