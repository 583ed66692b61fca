#include "models/classifiers/text_classifier.h"

#include <exception>
#include <string>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "c10/core/InferenceMode.h"
#include "models/classifiers/served_text_classifier.h"
#include "models/classifiers/text_network.h"
#include "models/gpu_backends.h"
#include "models/layers/library_error.h"
#include "models/layers/library_threads.h"
#include "models/layers/placed_networks.h"
#include "models/layers/stored_tensor.h"
#include "models/tokenizer/bytes_plus_one_tokenizer.h"
#include "models/tokenizer/listops_tokenizer.h"
#include "models/weights/labels.h"
#include "models/weights/text_classifier_config.h"
#include "models/weights/text_classifier_tensors.h"

namespace longshort {
namespace {

absl::StatusOr<ClassifierInfo> MakeInfo(const TextClassifierConfig& config, const ModelDirectory& directory,
                                        const ClassifierOptions& options) {
  const bool pixels = config.tokenizer == DocumentTokenizerKind::kPixels;
  ClassifierInfo info;
  info.architecture = "text_classifier";
  info.input = pixels ? ClassifierInput::kPixelSequence : ClassifierInput::kText;
  info.classes = config.classes;
  if (directory.labels_text) {
    LS_ASSIGN_OR_RETURN(info.labels, ParseLabels(*directory.labels_text, config.classes, directory.labels_path()));
  }
  info.parameters = CountElements(TextClassifierTensors(config));
  info.precision = options.InfoPrecision();
  info.fingerprint = directory.fingerprint;
  info.tokenizer = DocumentTokenizerName(config.tokenizer);
  info.documents = config.documents;
  info.vocabulary_size = config.vocabulary_size;
  info.max_document_tokens = config.MaxDocumentTokens();
  if (options.gpus != nullptr) info.gpu_workspace_bytes = options.gpus->DocumentGraphBytes(info.classes);
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Classifier>> LoadTextClassifier(const ModelDirectory& directory,
                                                               const ClassifierOptions& options) {
  LS_ASSIGN_OR_RETURN(const TextClassifierConfig config,
                      ParseTextClassifierConfig(directory.config_text, directory.config_path()));
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, TextClassifierTensors(config)));
  LS_ASSIGN_OR_RETURN(ClassifierInfo info, MakeInfo(config, directory, options));
  TensorReader reader(directory.weights);
  try {
    const c10::InferenceMode inference;
    const OneThread one_thread;
    const TextNetwork network = MakeTextNetwork(config, [&](const std::string& name) { return reader.Read(name); });
    LS_RETURN_IF_ERROR(reader.Finish());
    const PlacedNetworks<TextNetwork> networks(options, [&network](TensorMove& move) {
      auto copy = std::make_shared<TextNetwork>(network);
      copy->MoveBy(move);
      return copy;
    });
    return ServedTextClassifier::Create(std::move(info), networks, networks.First(), options.gpus);
  } catch (const std::exception& error) {
    LS_RETURN_IF_ERROR(reader.status());
    return LibraryError(absl::StrCat("while loading ", directory.path), error);
  }
}

absl::StatusOr<std::unique_ptr<DocumentTokenizer>> LoadDocumentTokenizer(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const TextClassifierConfig config,
                      ParseTextClassifierConfig(directory.config_text, directory.config_path()));
  const bool is_listops = config.tokenizer == DocumentTokenizerKind::kListOps2020 ||
                          config.tokenizer == DocumentTokenizerKind::kListOps2021;
  if (is_listops != directory.vocabulary_text.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.vocabulary_path(), is_listops ? ": missing, and config.json's tokenizer reads it"
                                                : ": there, but config.json's tokenizer does not read it"));
  }
  if (config.tokenizer == DocumentTokenizerKind::kBytesPlusOne) return MakeBytesPlusOneTokenizer();
  if (!is_listops) return nullptr;
  const ListOpsRules rules =
      config.tokenizer == DocumentTokenizerKind::kListOps2020 ? ListOpsRules::k2020 : ListOpsRules::k2021;
  return LoadListOpsTokenizer(rules, *directory.vocabulary_text, directory.vocabulary_path(), config.vocabulary_size);
}

}  // namespace longshort
