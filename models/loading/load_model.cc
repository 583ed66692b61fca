#include "models/loading/load_model.h"

#include <string_view>
#include <utility>

#include "models/language_model/language_model.h"
#include "models/status_macros.h"
#include "models/text_classifier/text_classifier.h"
#include "models/weights/config_fields.h"
#include "models/weights/model_directory.h"

namespace longshort {
namespace {

absl::StatusOr<LoadedModel> LoadLanguage(const ModelDirectory& directory, const LoadOptions& options) {
  LoadedLanguageModel loaded;
  LS_ASSIGN_OR_RETURN(loaded.model,
                      LoadLanguageModel(directory, {.precision = options.precision, .threads = options.threads}));
  LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadTokenizer(directory));
  return loaded;
}

absl::StatusOr<LoadedModel> LoadText(const ModelDirectory& directory, const LoadOptions& options) {
  LoadedClassifier loaded;
  LS_ASSIGN_OR_RETURN(loaded.classifier, LoadTextClassifier(directory, {.threads = options.threads}));
  LS_ASSIGN_OR_RETURN(loaded.tokenizer, LoadDocumentTokenizer(directory));
  return loaded;
}

using Loader = absl::StatusOr<LoadedModel> (*)(const ModelDirectory& directory, const LoadOptions& options);

// By the index of the name.
constexpr std::string_view kArchitectures[] = {"language_model", "text_classifier"};
constexpr Loader kLoaders[] = {LoadLanguage, LoadText};

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const std::string& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const ModelDirectory opened, OpenModelDirectory(directory));
  LS_ASSIGN_OR_RETURN(const ConfigFields fields, ConfigFields::Parse(opened.config_text, opened.config_path()));
  LS_ASSIGN_OR_RETURN(const size_t architecture, fields.Choice("architecture", kArchitectures));
  return kLoaders[architecture](opened, options);
}

}  // namespace longshort
