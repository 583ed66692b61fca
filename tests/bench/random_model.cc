#include "tests/bench/random_model.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "models/weights/cvt_config.h"
#include "models/weights/language_model_config.h"
#include "models/weights/safetensors.h"
#include "models/weights/text_classifier_config.h"
#include "models/weights/vil_config.h"

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

std::vector<float> Values(const models::TensorShape& tensor, std::mt19937_64& random) {
  const int64_t elements = *models::ElementCount(tensor.shape);
  std::vector<float> values(elements, 1.0F);  // gains, biases, variances
  if (absl::EndsWith(tensor.name, "inv_freq")) {
    for (int64_t i = 0; i < elements; ++i) {
      values[i] = static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(elements)));
    }
  } else if (tensor.shape.size() > 1) {
    std::uniform_real_distribution<float> weight(-1, 1);
    const float scale = std::sqrt(3.0F * static_cast<float>(tensor.shape[0]) / static_cast<float>(elements));
    for (float& value : values) value = scale * weight(random);
  }
  return values;
}

}  // namespace

absl::Status WriteRandomModel(const std::string& config, const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/config.json");
  LS_ASSIGN_OR_RETURN(const std::vector<models::TensorShape> tensors, TensorsOf(config, path));
  std::mt19937_64 random(1);
  std::vector<std::vector<float>> values;
  std::vector<models::NamedTensor> named;
  for (const models::TensorShape& tensor : tensors) {
    const std::vector<float>& made = values.emplace_back(Values(tensor, random));
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
