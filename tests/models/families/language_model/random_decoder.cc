#include "tests/models/families/language_model/random_decoder.h"

#include <cmath>
#include <map>
#include <string>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/families/language_model/language_model_config.h"

namespace longshort::models {

Decoder RandomDecoder(const LanguageModelConfig& config, uint64_t seed, at::ScalarType product_type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::map<std::string, at::Tensor> tensors;
  for (const TensorShape& tensor : LanguageModelTensors(config)) {
    const double deviation = tensor.shape.size() == 2 ? 1.0 / std::sqrt(static_cast<double>(tensor.shape[1])) : 0.3;
    at::Tensor value = at::normal(0.0, deviation, tensor.shape, generator);
    if (tensor.shape.size() == 1 && tensor.name.ends_with(".weight")) value = value + 1.0;  // a gain
    if (tensor.name == "pos_emb.inv_freq")
      value = at::pow(10000.0, at::arange(tensor.shape[0], at::kFloat) / -tensor.shape[0]);
    tensors[tensor.name] = value;
  }
  return MakeDecoder(config, product_type, [&](const std::string& name) { return tensors.at(name); });
}

LanguageModelInfo InfoOf(const LanguageModelConfig& config) { return {config, {}}; }

LanguageModelConfig SmallConfig() {
  LanguageModelConfig config;
  config.layers = 2;
  config.model_width = 24;
  config.heads = 3;
  config.feed_forward_width = 40;
  config.chunk_size = 4;
  config.window_length = 10;
  config.memory_length = 24;
  config.segment_length = 12;
  config.vocabulary_size = 31;
  return config;
}

LanguageModelConfig QuickConfig() {
  LanguageModelConfig config = SmallConfig();
  config.layers = 1;
  config.heads = 1;
  config.model_width = 8;
  return config;
}

}  // namespace longshort::models
