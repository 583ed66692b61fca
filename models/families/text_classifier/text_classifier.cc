#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "models/families/family_loader.h"
#include "models/families/served_classifier.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/families/text_classifier/text_network.h"
#include "models/images/image_preprocessor.h"
#include "models/load_options.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models {
namespace {

// Maximum size of a tensor of packed documents. Several such tensors fit in a core's cache together.
constexpr int64_t kMaxTensorBytes = 512 << 10;
constexpr int64_t kMinTensorBytes = kMaxTensorBytes / 4;

MicroBatchWork TokensOfMicroBatch(const TextClassifierConfig& config) {
  const int64_t row_bytes =
      static_cast<int64_t>(sizeof(float)) * std::max(config.model_width, config.feed_forward_width);
  const auto rows = [&](int64_t bytes) { return std::max<int64_t>(bytes / row_bytes, 1); };
  return {.min = rows(kMinTensorBytes), .max = rows(kMaxTensorBytes)};
}

class ServedText final : public ServedNetwork {
 public:
  explicit ServedText(TextNetwork network) : network_(std::move(network)) {}

  absl::Status Check(Items items, ClassifierOutput output) const override {
    for (size_t index = 0; index < items.size(); ++index) LS_RETURN_IF_ERROR(CheckItem(*items[index], index, output));
    return absl::OkStatus();
  }
  // Counts tokens. Masked ones cause no work, but are counted for simplicity.
  std::vector<int64_t> Work(Items items) const override {
    std::vector<int64_t> tokens(items.size());
    for (size_t index = 0; index < items.size(); ++index) {
      for (const auto& document : std::get<TokenItem>(*items[index]).documents) {
        tokens[index] += static_cast<int64_t>(document.size());
      }
    }
    return tokens;
  }
  MicroBatchWork micro_batch_work() const override { return TokensOfMicroBatch(network_.config); }
  Output Run(Items items, ClassifierOutput output) const override {
    const auto packed = std::make_shared<const PackedDocuments>(Pack(items, &TextNetwork::Pack));
    return {.rows = network_.Run(output, packed), .multiply_adds = network_.MultiplyAdds(output, *packed)};
  }
  int64_t BeginOn(GpuItemAttention& gpu, Items items, ClassifierOutput output) const override {
    const PackedIds packed = Pack(items, &TextNetwork::PackForGpu);
    gpu.BeginDocuments(packed, LayersOn(gpu, output), /*prepared=*/output == PreparedOutput());
    return network_.MultiplyAdds(output, packed);
  }
  absl::Status PrepareOn(GpuItemAttention& gpu) const override {
    return gpu.PrepareDocuments(network_.config.NetworkDocuments(), network_.Windows(),
                                LayersOn(gpu, PreparedOutput()));
  }
  // The fused kernels have float32 only.
  bool GainsFromNarrowProducts() const override { return !CanFuse(network_.layers); }
  std::shared_ptr<const ServedNetwork> Copy(TensorMove& move) const override {
    TextNetwork copy = network_;
    copy.MoveBy(move);
    return std::make_shared<ServedText>(std::move(copy));
  }

 private:
  absl::Status CheckItem(const ClassifierItem& item, size_t index, ClassifierOutput output) const;
  absl::Status CheckDocument(const std::vector<int32_t>& ids, const std::string& name) const;
  absl::Status CheckLength(int64_t tokens, const std::string& name) const;

  // The output that graphs compute.
  ClassifierOutput PreparedOutput() const {
    return network_.config.classes == 0 ? ClassifierOutput::kFeatures : ClassifierOutput::kLogits;
  }
  template <typename Packed>
  Packed Pack(Items items, Packed (TextNetwork::*pack)(absl::Span<const absl::Span<const int32_t>>) const) const {
    std::vector<absl::Span<const int32_t>> documents;
    std::vector<std::vector<int32_t>> joined;
    joined.reserve(items.size());
    for (const ClassifierItem* const item : items) {
      const auto& of_item = std::get<TokenItem>(*item).documents;
      if (network_.config.JoinsPairs() && of_item.size() == 2) {
        documents.emplace_back(joined.emplace_back(network_.Joined(of_item[0], of_item[1])));
      } else {
        documents.insert(documents.end(), of_item.begin(), of_item.end());
      }
    }
    return (network_.*pack)(documents);
  }
  GpuItemAttention::DocumentLayers LayersOn(GpuItemAttention& gpu, ClassifierOutput output) const {
    return [this, &gpu, output](const DocumentTokens& documents) { return network_.Run(output, documents, gpu); };
  }

  TextNetwork network_;
};

absl::Status ServedText::CheckItem(const ClassifierItem& item, size_t index, ClassifierOutput output) const {
  const TextClassifierConfig& config = network_.config;
  const std::string name = absl::StrCat("item ", index);
  const auto* const tokens = std::get_if<TokenItem>(&item);
  if (tokens == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(name, " is an image, but the model accepts token sequences"));
  // One that is not joined embeds one document.
  const bool classifies = output == ClassifierOutput::kLogits || output == ClassifierOutput::kLogitsAndFeatures;
  const int64_t max = classifies || config.JoinsPairs() ? config.MaxDocuments() : 1;
  const int64_t min = std::min(config.MinDocuments(), max), count = static_cast<int64_t>(tokens->documents.size());
  if (count < min || count > max) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: document count is %d; it must be %s", name, count, RangeText(min, max)));
  }
  for (int64_t number = 0; number < count; ++number) {
    LS_RETURN_IF_ERROR(CheckDocument(tokens->documents[number], absl::StrCat(name, ": document ", number)));
  }
  if (!config.JoinsPairs() || count == 1) return absl::OkStatus();
  const size_t joined = tokens->documents[0].size() + tokens->documents[1].size();
  return CheckLength(static_cast<int64_t>(joined), name);
}

absl::Status ServedText::CheckDocument(const std::vector<int32_t>& ids, const std::string& name) const {
  LS_RETURN_IF_ERROR(CheckLength(static_cast<int64_t>(ids.size()), name));
  const auto wrong = std::find_if(ids.begin(), ids.end(),
                                  [this](int32_t id) { return id < 0 || id >= network_.config.vocabulary_size; });
  if (wrong != ids.end()) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: token %d is %d; it must be in 0..%d", name,
                                                      wrong - ids.begin(), *wrong,
                                                      network_.config.vocabulary_size - 1));
  }
  const int64_t padding = network_.config.padding_id;
  if (std::all_of(ids.begin(), ids.end(), [padding](int32_t id) { return id == padding; })) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ids.empty() ? " is empty" : absl::StrCat(" contains only padding: every token is ", padding)));
  }
  return absl::OkStatus();
}

absl::Status ServedText::CheckLength(int64_t tokens, const std::string& name) const {
  const int64_t max = network_.config.MaxDocumentTokens();
  if (tokens <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: token count is %d, the limit is %d", name, tokens, max));
}

ClassifierInfo InfoOf(const TextClassifierConfig& config, const LoadOptions& options) {
  const bool pixels = config.tokenizer == DocumentTokenizerKind::kPixels;
  ClassifierInfo info;
  info.architecture = "text_classifier";
  info.input = pixels ? ClassifierInput::kPixelSequence : ClassifierInput::kText;
  info.classes = config.classes;
  info.width = config.model_width;
  info.vectors = config.NetworkDocuments();
  info.has_cls = config.cls != ClsKind::kNone;
  info.parameters = CountParameters(TextClassifierTensors(config));
  info.tokenizer = DocumentTokenizerName(config.tokenizer);
  info.documents = config.MinDocuments();
  info.joins_pairs = config.JoinsPairs();
  info.trained_on_pairs = config.documents == 2;
  info.padding_id = static_cast<int32_t>(config.padding_id);
  info.problem_type = config.problem_type;
  info.vocabulary_size = config.vocabulary_size;
  info.max_document_tokens = config.MaxDocumentTokens();
  if (options.gpus != nullptr)
    info.gpu_workspace_bytes = options.gpus->DocumentGraphBytes(info.classes > 0 ? info.classes : info.width);
  return info;
}

}  // namespace

absl::StatusOr<ClassifierWeights> LoadTextClassifier(const ModelDirectory& directory, const LoadOptions& options) {
  LS_ASSIGN_OR_RETURN(const TextClassifierConfig config,
                      ParseTextClassifierConfig(directory.config_text, directory.config_path()));
  LS_RETURN_IF_ERROR(CheckTensors(directory.weights, TextClassifierTensors(config)));
  return LoadServedClassifier(
      InfoOf(config, options), config.model_width / config.heads, directory, options,
      [&config](const TensorSource& read) { return std::make_shared<ServedText>(MakeTextNetwork(config, read)); });
}

absl::StatusOr<std::unique_ptr<TextEncoder>> LoadDocumentTokenizer(const ModelDirectory& directory) {
  LS_ASSIGN_OR_RETURN(const TextClassifierConfig config,
                      ParseTextClassifierConfig(directory.config_text, directory.config_path()));
  const std::string_view read = TokenizerFile(config.tokenizer);
  std::string_view content;
  for (const auto& [file, text] : {std::pair(std::string_view("vocabulary.txt"), &directory.vocabulary_text),
                                   std::pair(std::string_view("tokenizer.json"), &directory.tokenizer_text)}) {
    const bool is_read = file == read;
    if (is_read != text->has_value()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s/%s: %s", directory.path, file,
                          is_read ? "missing, but config.json's tokenizer reads it"
                                  : "config.json's tokenizer does not read it; remove the file"));
    }
    if (is_read) content = **text;
  }
  return MakeDocumentTokenizer(config, content, absl::StrFormat("%s/%s", directory.path, read));
}

std::string_view TokenizerFile(DocumentTokenizerKind tokenizer) {
  switch (tokenizer) {
    case DocumentTokenizerKind::kListOps2020:
    case DocumentTokenizerKind::kListOps2021:
      return "vocabulary.txt";
    case DocumentTokenizerKind::kByteLevelBpe:
      return "tokenizer.json";
    case DocumentTokenizerKind::kNone:
    case DocumentTokenizerKind::kBytesPlusOne:
    case DocumentTokenizerKind::kPixels:
      break;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<TextEncoder>> MakeDocumentTokenizer(const TextClassifierConfig& config,
                                                                   std::string_view content, const std::string& name) {
  switch (config.tokenizer) {
    case DocumentTokenizerKind::kBytesPlusOne:
      return MakeBytesPlusOneTokenizer();
    case DocumentTokenizerKind::kListOps2020:
      return LoadListOpsTokenizer(ListOpsRules::k2020, content, name, config.vocabulary_size);
    case DocumentTokenizerKind::kListOps2021:
      return LoadListOpsTokenizer(ListOpsRules::k2021, content, name, config.vocabulary_size);
    case DocumentTokenizerKind::kByteLevelBpe:
      return LoadByteLevelBpe(content, name, config.vocabulary_size,
                              config.JoinsPairs() ? std::optional<int32_t>(config.separator_id) : std::nullopt,
                              static_cast<int32_t>(config.padding_id));
    case DocumentTokenizerKind::kNone:
    case DocumentTokenizerKind::kPixels:
      break;
  }
  return nullptr;
}

namespace text_classifier {

absl::StatusOr<LoadedModel> Load(const ModelDirectory& directory, const LoadOptions& options,
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

absl::StatusOr<WeightSizes> Sizes(const ModelDirectory& directory, const LoadOptions& options) {
  return ClassifierSizes(directory, options, /*packs=*/options.precision != "fp32");
}

FamilyLoader Loader() { return {.architecture = "text_classifier", .load = Load, .sizes = Sizes}; }

}  // namespace text_classifier
}  // namespace longshort::models
