#include "models/train/parameters.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/status/statusor.h"
#include "models/status_macros.h"
#include "models/weights/atomic_file.h"
#include "models/weights/language_model_tensors.h"
#include "models/weights/safetensors_writer.h"

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

std::vector<NamedParameter> InitialParameters(const LanguageModelConfig& config, uint64_t seed) {
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

absl::Status WriteModelDirectory(const std::string& directory, const LanguageModelConfig& config,
                                 const std::vector<NamedParameter>& parameters, const std::string& vocabulary) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return absl::UnavailableError(directory + ": cannot be made: " + error.message());

  std::vector<at::Tensor> halves;
  std::vector<NamedTensor> tensors;
  for (const NamedParameter& parameter : parameters) {
    const bool exact = parameter.name == kFrequencies;
    halves.push_back(parameter.value.detach().to(exact ? at::kFloat : at::kHalf).contiguous());
    tensors.push_back(
        {.name = parameter.name,
         .type = exact ? DataType::kF32 : DataType::kF16,
         .shape = halves.back().sizes().vec(),
         .data = {static_cast<const std::byte*>(halves.back().const_data_ptr()), halves.back().nbytes()}});
  }
  LS_RETURN_IF_ERROR(WriteSafetensors(directory + "/model.safetensors", tensors));
  LS_RETURN_IF_ERROR(WriteFileAtomically(directory + "/vocabulary.txt", {vocabulary}));
  return WriteFileAtomically(directory + "/config.json", {ToJson(config)});
}

}  // namespace longshort
