#include "tests/models/families/cvt/random_cvt.h"

#include <cmath>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/cvt/cvt_config.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

CvtConfig SmallCvt() {
  CvtConfig config;
  config.stages = {{.width = 12,
                    .heads = 2,
                    .depth = 2,
                    .projection_rank = 3,
                    .window_size = 4,
                    .embedding_kernel = 7,
                    .embedding_stride = 4,
                    .embedding_padding = 2},
                   {.width = 18,
                    .heads = 3,
                    .depth = 1,
                    .projection_rank = 2,
                    .window_size = 3,
                    .embedding_kernel = 3,
                    .embedding_stride = 2,
                    .embedding_padding = 1}};
  config.classes = 5;
  return config;
}

std::map<std::string, at::Tensor> RandomCvtTensors(const CvtConfig& config, uint64_t seed, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::map<std::string, at::Tensor> tensors;
  for (const TensorShape& tensor : CvtTensors(config)) {
    const bool is_vector = tensor.shape.size() == 1;
    const double inputs = static_cast<double>(*ElementCount(tensor.shape)) / static_cast<double>(tensor.shape[0]);
    at::Tensor value = at::normal(0.0, is_vector ? 0.3 : 1.0 / std::sqrt(inputs), tensor.shape, generator).to(type);
    if (is_vector && tensor.name.ends_with(".weight")) value = value + 1.0;  // a gain
    if (tensor.name.ends_with(".running_var")) value = value.exp();
    tensors[tensor.name] = value;
  }
  return tensors;
}

CvtNetwork NetworkOver(const CvtConfig& config, const std::map<std::string, at::Tensor>& tensors) {
  return MakeCvtNetwork(config, [&](const std::string& name) { return tensors.at(name); });
}

at::Tensor RandomImages(int64_t batch, int64_t height, int64_t width, uint64_t seed, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({batch, 3, height, width}, generator, at::TensorOptions(type));
}

ClassifierItem ImageItemOf(const at::Tensor& image) {
  const at::Tensor values = image.contiguous();
  const float* const first = values.const_data_ptr<float>();
  return ImageItem{.height = image.size(1), .width = image.size(2), .values = {first, first + values.numel()}};
}

absl::Status WriteImageModel(const TemporaryDirectory& directory, const std::string& config,
                             const std::map<std::string, at::Tensor>& tensors) {
  directory.Write("config.json", config);
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back(AsNamed(name, tensor));
  return WriteSafetensors(directory.File("model.safetensors"), named);
}

}  // namespace longshort::models
