#include "models/loading/load_model.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/classifiers/classifiers.h"
#include "models/images/image_preprocessor.h"
#include "models/language_model/language_model.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/language_model_config.h"
#include "models/weights/model_directory.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {
namespace {

absl::StatusOr<LoadedModel> LoadLanguage(const ModelDirectory& directory, const LoadOptions& options,
                                         const ImageLimits&) {
  LoadedLanguageModel loaded;
  LS_ASSIGN_OR_RETURN(loaded.weights, LoadLanguageModel(directory, options));
  LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(directory));
  return loaded;
}

absl::StatusOr<LoadedModel> LoadText(const ModelDirectory& directory, const LoadOptions& options,
                                     const ImageLimits& image_limits) {
  LoadedClassifier loaded;
  LS_ASSIGN_OR_RETURN(loaded.weights, LoadTextClassifier(directory, options));
  LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadDocumentTokenizer(directory));
  if (loaded.weights.info().input == ClassifierInput::kPixelSequence) {
    LS_ASSIGN_OR_RETURN(const TextClassifierConfig config,
                        ParseTextClassifierConfig(directory.config_text, directory.config_path()));
    loaded.preprocessor = MakePixelSequencePreprocessor(config.preprocessing, image_limits);
  }
  return loaded;
}

// Loads the network of an image classifier. The rest is the same for all image classifiers.
using ImageLoader = absl::StatusOr<ClassifierWeights> (*)(const ModelDirectory& directory, const LoadOptions& options);

template <ImageLoader load>
absl::StatusOr<LoadedModel> LoadImages(const ModelDirectory& directory, const LoadOptions& options,
                                       const ImageLimits& image_limits) {
  LoadedClassifier loaded;
  LS_ASSIGN_OR_RETURN(loaded.weights, load(directory, options));
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(directory.config_text, directory.config_path()));
  LS_ASSIGN_OR_RETURN(const ImagePreprocessingConfig preprocessing, ReadImagePreprocessing(fields));
  loaded.preprocessor = MakeImagePreprocessor(preprocessing, image_limits);
  return loaded;
}

struct Registration {
  std::string_view architecture;  // in config.json
  absl::StatusOr<LoadedModel> (*load)(const ModelDirectory& directory, const LoadOptions& options,
                                      const ImageLimits& image_limits);
};

// A new architecture needs one line here (docs/adding_a_model.md).
constexpr Registration kRegistrations[] = {
    {"language_model", LoadLanguage},
    {"text_classifier", LoadText},
    {"vil", LoadImages<LoadVil>},
    {"cvt", LoadImages<LoadCvt>},
};

absl::StatusOr<size_t> ArchitectureOf(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(directory.config_text, directory.config_path()));
  std::vector<std::string_view> names;
  for (const Registration& registration : kRegistrations) names.push_back(registration.architecture);
  return fields.Choice("architecture", names);
}

// From the header of the file.
int64_t Elements(const SafetensorsFile& weights) {
  int64_t elements = 0;
  for (const auto& [name, tensor] : weights.tensors()) elements += tensor.bytes / DataTypeBytes(tensor.type);
  return elements;
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options, const LoadGuard& guard,
                                      const ImageLimits& image_limits) {
  size_t architecture = 0;
  const auto check_room = [&](const ModelDirectory& opened) -> absl::Status {
    if (guard.check_room == nullptr) return absl::OkStatus();
    const int64_t elements = Elements(opened.weights);
    if (kRegistrations[architecture].load == LoadLanguage) {
      // int8 is read in float32, and packed at the end.
      const std::string read_as = options.precision == "int8" ? "fp32" : options.precision;
      LS_ASSIGN_OR_RETURN(const LanguageModelConfig config,
                          ParseLanguageModelConfig(opened.config_text, directory + "/config.json"));
      // In every precision, positions and the rows of the embedding are float32.
      const int64_t positions = WeightBytes(config.PositionTableElements(), "fp32");
      const int64_t embedding =
          options.precision == "fp32" ? 0 : WeightBytes(config.vocabulary_size * config.model_width, "fp32");
      return guard.check_room(WeightBytes(elements, read_as) + positions + embedding,
                              WeightBytes(elements, options.precision) + positions + embedding);
    }
    // A CPU packs all weights (ServedNetwork::IsFasterInPanels) or those of narrow products, while the host still has
    // what it read in float32.
    const std::vector<WorkerDevice> devices = options.DevicesOrCpu();
    const bool packs = (options.precision != "fp32" || kRegistrations[architecture].load != LoadText) &&
                       std::any_of(devices.begin(), devices.end(),
                                   [](const WorkerDevice& device) { return device.kind == DeviceKind::kCpu; });
    return guard.check_room(WeightBytes(elements, "fp32") * (packs ? 2 : 1),
                            WeightBytes(elements, ClassifierPrecision(options.precision)));
  };
  const bool may_be_served = !guard.served_fingerprint.empty();
  const auto check = [&](const ModelDirectory& opened) -> absl::Status {
    LS_ASSIGN_OR_RETURN(architecture, ArchitectureOf(opened));
    return may_be_served ? absl::OkStatus() : check_room(opened);
  };
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory, check, guard.stop_requested));
  if (may_be_served) {
    if (opened.fingerprint == guard.served_fingerprint) {
      return absl::AlreadyExistsError(directory + " has the fingerprint that is served");
    }
    LS_RETURN_IF_ERROR(check_room(opened));
  }
  return kRegistrations[architecture].load(opened, options, image_limits);
}

}  // namespace longshort::models
