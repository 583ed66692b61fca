#include "tests/models/families/text_classifier/random_text_model.h"

#include <cmath>
#include <fstream>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/ops/layers/linear.h"
#include "models/weights/safetensors.h"

namespace longshort::models {

TextClassifierConfig SmallTextConfig() {
  TextClassifierConfig config;
  config.model_width = 16;
  config.feed_forward_width = 20;
  config.window_size = 4;
  config.projection_rank = 3;
  config.vocabulary_size = 23;
  config.max_sequence_length = 40;
  config.classes = 3;
  return config;
}

TextClassifierConfig SmallEncoderConfig() {
  TextClassifierConfig config = SmallTextConfig();
  config.cls = ClsKind::kFirstToken;
  config.layer_norm = LayerNormPlace::kAfter;
  config.layer_norm_epsilon = 1e-3;  // a visible one
  config.padding_id = 1;
  config.head = HeadKind::kTanh;
  return config;
}

std::map<std::string, at::Tensor> RandomTextTensors(const TextClassifierConfig& config, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::map<std::string, at::Tensor> tensors;
  for (const TensorShape& tensor : TextClassifierTensors(config)) {
    const double deviation = tensor.shape.size() == 2 ? 1.0 / std::sqrt(static_cast<double>(tensor.shape[1])) : 0.3;
    at::Tensor value = at::normal(0.0, deviation, tensor.shape, generator);
    if (tensor.shape.size() == 1 && tensor.name.ends_with(".weight")) value = value + 1.0;  // a gain
    tensors[tensor.name] = value;
  }
  return tensors;
}

void WriteTextModel(const std::string& directory, const TextClassifierConfig& config, uint64_t seed) {
  const std::map<std::string, at::Tensor> tensors = RandomTextTensors(config, seed);
  std::vector<NamedTensor> named;
  for (const auto& [name, value] : tensors) named.push_back(AsNamed(name, value));
  ASSERT_TRUE(WriteSafetensors(directory + "/model.safetensors", named).ok());
  std::ofstream(directory + "/config.json") << ToJson(config);
}

}  // namespace longshort::models
