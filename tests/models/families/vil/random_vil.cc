#include "tests/models/families/vil/random_vil.h"

#include <cmath>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/vil/vil_config.h"
#include "models/ops/item_attention/item_attention.h"

namespace longshort::models {

VilConfig VilOf(const std::string& stages, int64_t image_size) {
  VilConfig config;
  config.stages = ParseVilStages(stages, "stages").value();
  config.image_size = image_size;
  config.classes = 5;
  config.preprocessing.crop_height = config.preprocessing.crop_width = image_size;
  return config;
}

TensorsByName RandomVilTensors(const VilConfig& config, uint64_t seed, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  TensorsByName tensors;
  for (const TensorShape& tensor : VilTensors(config)) {
    const at::Tensor value = at::randn(tensor.shape, generator, at::kDouble);
    const bool matrix = tensor.name.ends_with(".weight") && tensor.shape.size() > 1;
    const bool gain = tensor.name.ends_with(".weight") && tensor.shape.size() == 1;
    const double inputs = static_cast<double>(value.numel()) / static_cast<double>(tensor.shape[0]);
    tensors[tensor.name] = (value * (matrix ? 1.0 / std::sqrt(inputs) : 0.3) + (gain ? 1.0 : 0.0)).to(type);
  }
  return tensors;
}

VilNetwork NetworkOver(const VilConfig& config, const TensorsByName& tensors) {
  return MakeVilNetwork(config, [&](const std::string& name) { return tensors.at(name); });
}

at::Tensor Logits(const VilNetwork& network, const at::Tensor& images) {
  CpuItemAttention attention;
  return network.head(network.Features(images, attention)).to(images.scalar_type());
}

at::Tensor RandomImages(const VilConfig& config, int64_t batch, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({batch, config.channels, config.image_size, config.image_size}, generator);
}

}  // namespace longshort::models
