#include "models/families/load_model.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/families/cvt/cvt_network.h"
#include "models/families/language_model/language_model_config.h"
#include "models/families/language_model/transformer_ls.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_network.h"
#include "models/families/vil/vil_config.h"
#include "models/families/vil/vil_network.h"
#include "models/images/image_preprocessor.h"
#include "models/weights/image_preprocessing_config.h"
#include "models/weights/model_directory.h"

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

// The number of the file's numbers, by its header.
int64_t Elements(const SafetensorsFile& weights) {
  int64_t elements = 0;
  for (const auto& [name, tensor] : weights.tensors()) elements += tensor.bytes / DataTypeBytes(tensor.type);
  return elements;
}

absl::StatusOr<WeightSizes> LanguageSizes(const ModelDirectory& directory, const LoadOptions& options) {
  const int64_t elements = Elements(directory.weights);
  // int8 is read in float32, and packed at the end.
  const std::string read_as = options.precision == "int8" ? "fp32" : options.precision;
  LS_ASSIGN_OR_RETURN(const LanguageModelConfig config,
                      ParseLanguageModelConfig(directory.config_text, directory.config_path()));
  // In every precision, positions and the rows of the embedding are float32.
  const int64_t positions = WeightBytes(config.PositionTableElements(), "fp32");
  const int64_t embedding =
      options.precision == "fp32" ? 0 : WeightBytes(config.vocabulary_size * config.model_width, "fp32");
  const int64_t bytes = WeightBytes(elements, options.precision) + positions + embedding;
  return WeightSizes{
      .loading_bytes = WeightBytes(elements, read_as) + positions + embedding, .host_bytes = bytes, .gpu_bytes = bytes};
}

// The sizes of a classifier.
//   packs         a CPU packs its weights, while the host still has what it read in float32
//   cpu_elements  numbers that a CPU needs in addition to the file's
WeightSizes ClassifierSizes(const ModelDirectory& directory, const LoadOptions& options, bool packs,
                            int64_t cpu_elements) {
  const int64_t elements = Elements(directory.weights), read_bytes = WeightBytes(elements, "fp32");
  const std::vector<WorkerDevice> devices = options.DevicesOrCpu();
  const bool has_cpu = std::any_of(devices.begin(), devices.end(),
                                   [](const WorkerDevice& device) { return device.kind == DeviceKind::kCpu; });
  // CPUs keep some of the weights in float32 with any precision.
  const int64_t cpu_bytes = has_cpu ? read_bytes + WeightBytes(cpu_elements, "fp32") : 0;
  return {.loading_bytes = packs ? read_bytes + cpu_bytes : read_bytes,
          .host_bytes = cpu_bytes,
          .gpu_bytes = WeightBytes(elements, options.precision == "int8" ? "bf16" : options.precision)};
}

absl::StatusOr<WeightSizes> TextSizes(const ModelDirectory& directory, const LoadOptions& options) {
  return ClassifierSizes(directory, options, /*packs=*/options.precision != "fp32", /*cpu_elements=*/0);
}

absl::StatusOr<WeightSizes> VilSizes(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const VilConfig config, ParseVilConfig(directory.config_text, directory.config_path()));
  return ClassifierSizes(directory, options, /*packs=*/true, VilKernelBiasElements(config));
}

absl::StatusOr<WeightSizes> ImageSizes(const ModelDirectory& directory, const LoadOptions& options) {
  return ClassifierSizes(directory, options, /*packs=*/true, /*cpu_elements=*/0);
}

struct Registration {
  std::string_view architecture;  // in config.json
  absl::StatusOr<LoadedModel> (*load)(const ModelDirectory& directory, const LoadOptions& options,
                                      const ImageLimits& image_limits);
  // Called before `load`, without the weights' values.
  absl::StatusOr<WeightSizes> (*sizes)(const ModelDirectory& directory, const LoadOptions& options);
};

// A new architecture needs one line here (docs/adding_a_model.md).
constexpr Registration kRegistrations[] = {
    {"language_model", LoadLanguage, LanguageSizes},
    {"text_classifier", LoadText, TextSizes},
    {"vil", LoadImages<LoadVil>, VilSizes},
    {"cvt", LoadImages<LoadCvt>, ImageSizes},
};

absl::StatusOr<const Registration*> FamilyOf(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const JsonView fields, JsonView::Parse(directory.config_text, directory.config_path()));
  std::vector<std::string_view> names;
  for (const Registration& registration : kRegistrations) names.push_back(registration.architecture);
  LS_ASSIGN_OR_RETURN(const size_t architecture, fields.Choice("architecture", names));
  return &kRegistrations[architecture];
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options, const LoadGuard& guard,
                                      const ImageLimits& image_limits) {
  const Registration* family = nullptr;
  WeightSizes sizes;
  const auto check_room = [&](const ModelDirectory& opened) -> absl::Status {
    LS_ASSIGN_OR_RETURN(sizes, family->sizes(opened, options));
    return guard.check_room == nullptr ? absl::OkStatus() : guard.check_room(sizes);
  };
  const bool may_be_served = !guard.served_fingerprint.empty();
  const auto check = [&](const ModelDirectory& opened) -> absl::Status {
    LS_ASSIGN_OR_RETURN(family, FamilyOf(opened));
    return may_be_served ? absl::OkStatus() : check_room(opened);
  };
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory, check, guard.stop_requested));
  if (may_be_served) {
    if (opened.fingerprint == guard.served_fingerprint) {
      return absl::AlreadyExistsError(directory + " has the fingerprint that is served");
    }
    LS_RETURN_IF_ERROR(check_room(opened));
  }
  LS_ASSIGN_OR_RETURN(LoadedModel loaded, family->load(opened, options, image_limits));
  std::visit([&](auto& model) { model.sizes = sizes; }, loaded);
  return loaded;
}

}  // namespace longshort::models
