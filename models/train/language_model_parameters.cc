#include "models/train/language_model_parameters.h"

#include <cmath>
#include <map>
#include <utility>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/train/model_writer.h"
#include "models/weights/language_model_tensors.h"

namespace longshort {
namespace {

constexpr const char kFrequencies[] = "pos_emb.inv_freq";

bool IsGain(const std::string& name) {
  return name.ends_with("norm1.weight") || name.ends_with("norm2.weight") || name.ends_with("dual_ln_win.weight") ||
         name.ends_with("dual_ln_dproj.weight");
}

at::Tensor InitialValue(const TensorShape& tensor, const LanguageModelConfig& config, at::Generator& generator) {
  if (tensor.name == kFrequencies) {
    const at::Tensor index = at::arange(config.model_width / 2, at::kDouble);
    return at::pow(10000.0, index * (-2.0 / static_cast<double>(config.model_width))).to(at::kFloat);
  }
  if (IsGain(tensor.name)) return at::ones(tensor.shape);
  if (!tensor.name.ends_with(".weight")) return at::zeros(tensor.shape);
  const double deviation = 1.0 / std::sqrt(static_cast<double>(tensor.shape[1]));
  return at::normal(0.0, deviation, tensor.shape, generator);
}

}  // namespace

std::vector<NamedParameter> InitialLanguageModelParameters(const LanguageModelConfig& config, uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<NamedParameter> parameters;
  for (const TensorShape& tensor : LanguageModelTensors(config)) {
    at::Tensor value = InitialValue(tensor, config, generator);
    if (tensor.name != kFrequencies) value.requires_grad_(true);
    parameters.push_back({tensor.name, std::move(value)});
  }
  return parameters;
}

Decoder DecoderOver(const LanguageModelConfig& config, const std::vector<NamedParameter>& parameters,
                    at::ScalarType product_type) {
  std::map<std::string, at::Tensor> by_name;
  for (const NamedParameter& parameter : parameters) by_name[parameter.name] = parameter.value;
  return MakeDecoder(config, product_type, [&](const std::string& name) { return by_name.at(name); });
}

absl::Status WriteLanguageModel(const std::string& directory, const LanguageModelConfig& config,
                                const std::vector<NamedParameter>& parameters, const std::string& vocabulary) {
  return WriteModelDirectory(directory, parameters, /*exact=*/{kFrequencies},
                             {{"vocabulary.txt", vocabulary}, {"config.json", ToJson(config)}});
}

}  // namespace longshort
