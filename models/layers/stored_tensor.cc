#include "models/layers/stored_tensor.h"

#include "ATen/Functions.h"
#include "models/weights/tensor_values.h"

namespace longshort {

at::Tensor ReadTensor(const SafetensorsFile& file, const std::string& name) {
  const TensorView& view = *file.Find(name);
  at::Tensor tensor = at::empty(view.shape, at::kFloat);
  const absl::Status copied =
      CopyAsFloat32(view, {tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  TORCH_CHECK(copied.ok(), name, ": ", std::string(copied.message()));
  return tensor;
}

}  // namespace longshort
