#include "tests/bench/random_model.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/families/cvt/cvt_config.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/vil/vil_config.h"
#include "models/weights/safetensors.h"

namespace longshort {
namespace {

absl::StatusOr<std::vector<models::TensorShape>> TensorsOf(const std::string& config, const std::string& name) {
  if (absl::StrContains(config, "\"language_model\"")) {
    LS_ASSIGN_OR_RETURN(const models::LanguageModelConfig parsed, models::ParseLanguageModelConfig(config, name));
    return models::LanguageModelTensors(parsed);
  }
  if (absl::StrContains(config, "\"text_classifier\"")) {
    LS_ASSIGN_OR_RETURN(const models::TextClassifierConfig parsed, models::ParseTextClassifierConfig(config, name));
    return models::TextClassifierTensors(parsed);
  }
  if (absl::StrContains(config, "\"vil\"")) {
    LS_ASSIGN_OR_RETURN(const models::VilConfig parsed, models::ParseVilConfig(config, name));
    return models::VilTensors(parsed);
  }
  LS_ASSIGN_OR_RETURN(const models::CvtConfig parsed, models::ParseCvtConfig(config, name));
  return models::CvtTensors(parsed);
}

uint64_t Fnv1a64(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3;
  return hash;
}

uint64_t SplitMix64(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// In base +- scale, by the hash of name and index: `tensor` of tests/golden/formula.py with the seed 0.
std::vector<float> ByFormula(const models::TensorShape& tensor, double base, double scale) {
  const uint64_t start = Fnv1a64(tensor.name);
  std::vector<float> values(*models::ElementCount(tensor.shape));
  for (size_t i = 0; i < values.size(); ++i) {
    const double u = std::ldexp(static_cast<double>(SplitMix64(start + i) >> 40), -24);  // in [0, 1)
    values[i] = static_cast<float>(base + scale * (2 * u - 1));
  }
  return values;
}

std::vector<float> Values(const models::TensorShape& tensor) {
  constexpr double kVectorScale = 0.2;
  const int64_t elements = *models::ElementCount(tensor.shape);
  if (absl::EndsWith(tensor.name, "inv_freq")) {
    std::vector<float> values(elements);
    for (int64_t i = 0; i < elements; ++i) {
      values[i] = static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(elements)));
    }
    return values;
  }
  if (tensor.shape.size() > 1) {
    // A sum over the inputs of a row has the inputs' deviation.
    return ByFormula(tensor, 0, std::sqrt(3.0 * static_cast<double>(tensor.shape[0]) / static_cast<double>(elements)));
  }
  const bool is_about_1 = absl::EndsWith(tensor.name, ".weight") || absl::EndsWith(tensor.name, "running_var");
  return ByFormula(tensor, is_about_1 ? 1 : 0, kVectorScale);
}

}  // namespace

absl::Status WriteRandomModel(const std::string& config, const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/config.json");
  LS_ASSIGN_OR_RETURN(const std::vector<models::TensorShape> tensors, TensorsOf(config, path));
  std::vector<std::vector<float>> values;
  std::vector<models::NamedTensor> named;
  for (const models::TensorShape& tensor : tensors) {
    const std::vector<float>& made = values.emplace_back(Values(tensor));
    named.push_back({.name = tensor.name,
                     .type = models::DataType::kF32,
                     .shape = tensor.shape,
                     .data = {reinterpret_cast<const std::byte*>(made.data()), made.size() * sizeof(float)}});
  }
  std::ofstream(path) << config;
  if (absl::StrContains(config, "\"listops")) {
    std::ofstream(absl::StrCat(directory, "/vocabulary.txt")) << "X\n1\n";
  }
  return models::WriteSafetensors(absl::StrCat(directory, "/model.safetensors"), named);
}

}  // namespace longshort
