#include <algorithm>
#include <utility>

#include "ATen/Functions.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "models/classifiers/classifiers.h"
#include "models/classifiers/text_network.h"
#include "models/train/labelled_data.h"
#include "models/train/labelled_texts.h"
#include "models/train/starting_model.h"
#include "models/train/trainable_classifier.h"
#include "models/weights/model_directory.h"
#include "models/weights/text_classifier_config.h"

namespace longshort::models {
namespace {

using Documents = std::vector<std::vector<int32_t>>;

class TrainableTextClassifier final : public TrainableClassifier {
 public:
  struct Data {
    TextClassifierConfig config;
    std::vector<std::string> labels;
    TokenisedTexts train, held_out;
    std::vector<ModelFile> files;
    RunSettings settings;
    std::vector<NamedParameter> begin;  // the weights that the run begins with; empty: random ones
  };

  TrainableTextClassifier(Data data, const TextVariationOptions& variation)
      : data_(std::move(data)), variation_(variation) {}

  int64_t training_examples() const override { return data_.train.size(); }
  int64_t held_out_examples() const override { return data_.held_out.size(); }

  std::vector<NamedParameter> InitialParameters(uint64_t seed) const override {
    std::vector<NamedParameter> parameters =
        longshort::models::InitialParameters(TextClassifierTensors(data_.config), seed);
    if (!data_.begin.empty()) Overwrite(data_.begin, parameters);
    return parameters;
  }

  // Sorts by falling length, so that the threads that share a batch's groups end at about the same time.
  void Arrange(std::vector<Draw>& batch) const override {
    std::stable_sort(batch.begin(), batch.end(), [this](const Draw& a, const Draw& b) {
      return data_.train.Tokens(a.example) > data_.train.Tokens(b.example);
    });
  }

  Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
               uint64_t seed) const override {
    Documents documents;
    std::vector<int64_t> targets;
    for (const Draw& draw : draws) {
      RandomDraws random = VariationOf(draw, seed);
      for (const std::vector<int32_t>& document : data_.train.items[draw.example].documents) {
        documents.push_back(Varied(document, random));
      }
      targets.push_back(data_.train.targets[draw.example]);
    }
    return Run(parameters, documents, targets);
  }

  Scores HeldOut(const std::vector<NamedParameter>& parameters, int64_t first, int64_t count) const override {
    Documents documents;
    for (int64_t item = first; item < first + count; ++item) {
      const Documents& of_item = data_.held_out.items[item].documents;
      documents.insert(documents.end(), of_item.begin(), of_item.end());
    }
    return Run(parameters, documents, absl::MakeConstSpan(data_.held_out.targets).subspan(first, count));
  }

  std::vector<ModelFile> Files() const override { return data_.files; }
  RunSettings Settings() const override {
    RunSettings settings = data_.settings;
    settings["--crop-tokens"] = absl::StrCat(variation_.crop_tokens);
    settings["--masked-tokens"] = absl::StrCat(variation_.masked_tokens);
    return settings;
  }

 private:
  // A piece of the document at its original position: the tokens before it are masked, which costs nothing. Some tokens
  // of the piece are masked, too, but not its first, so that at least one token is left. A first token that is
  // classified stays, and the piece is behind it, because masked tokens of such a model have no positions.
  std::vector<int32_t> Varied(std::vector<int32_t> document, RandomDraws& random) const {
    const auto padding = static_cast<int32_t>(data_.config.padding_id);
    const int64_t kept = data_.config.cls == ClsKind::kFirstToken ? 1 : 0;
    int64_t first = 0;
    const int64_t longer_by = static_cast<int64_t>(document.size()) - variation_.crop_tokens;
    if (variation_.crop_tokens > 0 && longer_by > 0) {
      first = random.Below(longer_by + 1);
      document.resize(first + variation_.crop_tokens);
      std::fill(document.begin() + kept, document.begin() + kept + first, padding);
    }
    if (variation_.masked_tokens > 0) {
      for (size_t i = first + 1; i < document.size(); ++i) {
        if (random.Uniform(0, 1) < variation_.masked_tokens) document[i] = padding;
      }
    }
    return document;
  }

  Scores Run(const std::vector<NamedParameter>& parameters, const Documents& documents,
             absl::Span<const int64_t> targets) const {
    const TextNetwork network = MakeTextNetwork(data_.config, ByName(parameters));
    const std::vector<absl::Span<const int32_t>> spans(documents.begin(), documents.end());
    return {.logits = network.Logits(std::make_shared<PackedDocuments>(network.Pack(spans))),
            .targets = CertainTargets(targets, data_.config.classes),
            .statistics = {}};
  }

  Data data_;
  TextVariationOptions variation_;
};

absl::StatusOr<std::string> ReadTrainingFile(const std::string& path) { return ReadTextFile(path, size_t{1} << 32); }

constexpr char kHead[] = "seq_classifer.";
constexpr char kHeadOut[] = "seq_classifer.mlpblock.2.";  // the layer with a row for each class

absl::StatusOr<std::vector<LabelledText>> ReadTexts(const std::string& path, const TrainingFiles& files,
                                                    int64_t documents) {
  if (files.config.empty() && documents == 1) return ReadLabelledTexts(path, files.columns);
  LS_ASSIGN_OR_RETURN(const std::string lines, ReadTrainingFile(path));
  return ParseLabelledTexts(lines, {.columns = files.columns, .documents = documents}, path);
}

// The loss is that of classes of which one is right.
absl::Status CheckProblemType(const TextClassifierConfig& config, const std::string& name) {
  if (config.problem_type == ProblemType::kSingleLabel) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": longshort-train trains a model only if its problem_type is 'single_label_classification'"));
}

// A model of bytes for these texts.
TextClassifierConfig PresetFor(const std::string& size, absl::Span<const LabelledText> texts) {
  TextClassifierConfig config;
  config.tokenizer = DocumentTokenizerKind::kBytesPlusOne;
  config.vocabulary_size = 257;
  config.window_size = 16;
  config.projection_rank = 8;
  if (size == "medium") {
    config.layers = 4;
    config.model_width = 128;
    config.heads = 4;
    config.feed_forward_width = 256;
    config.projection_rank = 16;
  }
  size_t longest = 0;
  for (const LabelledText& text : texts) longest = std::max(longest, text.documents.front().size());
  constexpr int64_t kLongest = 8192;
  config.max_sequence_length = 256;
  while (config.max_sequence_length < kLongest && config.max_sequence_length <= static_cast<int64_t>(longest)) {
    config.max_sequence_length *= 2;
  }
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(
    const TrainingFiles& files, const TextVariationOptions& variation) {
  TrainableTextClassifier::Data data;
  LS_ASSIGN_OR_RETURN(const GivenForm form, ReadGivenForm(files));
  if (!form.config.empty()) {
    LS_ASSIGN_OR_RETURN(data.config, ParseTextClassifierConfig(form.config, form.name));
    LS_RETURN_IF_ERROR(CheckProblemType(data.config, form.name));
  }
  LS_ASSIGN_OR_RETURN(std::vector<LabelledText> train, ReadTexts(files.train, files, data.config.documents));
  if (form.config.empty()) data.config = PresetFor(files.size, train);
  const std::string tokenizer_file(TokenizerFile(data.config.tokenizer));
  std::string vocabulary;
  if (form.from && !tokenizer_file.empty()) {
    const bool is_bpe = data.config.tokenizer == DocumentTokenizerKind::kByteLevelBpe;
    vocabulary = (is_bpe ? form.from->tokenizer_text : form.from->vocabulary_text).value_or("");
  }
  if (!files.vocabulary.empty()) {
    if (tokenizer_file.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vocabulary=", files.vocabulary, ": the tokenizer of ", form.name, " has no vocabulary"));
    }
    LS_ASSIGN_OR_RETURN(vocabulary, ReadTrainingFile(files.vocabulary));
  }
  if (!vocabulary.empty()) data.files.push_back({tokenizer_file, vocabulary});
  if (!form.from && files.vocabulary.empty() && !tokenizer_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(form.name, ": its tokenizer reads ", tokenizer_file, "; give it with --vocabulary"));
  }
  const std::string vocabulary_name = form.from ? absl::StrCat(form.from->path, "/", tokenizer_file) : files.vocabulary;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TextEncoder> tokenizer,
                      MakeDocumentTokenizer(data.config, vocabulary, vocabulary_name));
  if (tokenizer == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(form.name, ": its tokenizer does not accept text"));
  }
  std::vector<LabelledText> held_out;
  data.labels = LabelsOf(train);
  if (files.held_out.empty()) {
    LS_RETURN_IF_ERROR(HoldOut(train, held_out, files.held_out_fraction, files.train, [](const LabelledText& text) {
      return Example{.label = text.label, .content = {text.documents.begin(), text.documents.end()}};
    }));
  } else {
    LS_ASSIGN_OR_RETURN(held_out, ReadTexts(files.held_out, files, data.config.documents));
  }
  const int64_t classes = data.config.classes;
  if (files.config.empty()) data.config.classes = static_cast<int64_t>(data.labels.size());
  LS_RETURN_IF_ERROR(CheckTextClassifierConfig(data.config, form.name));
  LS_RETURN_IF_ERROR(CheckLabelCount(data.labels, data.config.classes, files.train));
  data.files.push_back({"config.json", files.config.empty() ? ToJson(data.config) : form.config});
  LS_ASSIGN_OR_RETURN(data.train, TokeniseTexts(train, data.config, *tokenizer, data.labels));
  LS_ASSIGN_OR_RETURN(data.held_out, TokeniseTexts(held_out, data.config, *tokenizer, data.labels));
  data.files.push_back({"labels.txt", LabelsText(data.labels)});
  if (form.from) {
    LS_ASSIGN_OR_RETURN(data.begin, StartingWeights(*form.from, classes, data.labels, classes == 0 ? kHead : kHeadOut,
                                                    TextClassifierTensors(data.config)));
    AddStartingModel(*form.from, data.settings);
  }

  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  LS_RETURN_IF_ERROR(hash.Add("vocabulary", vocabulary));
  for (const LabelledText& text : train) {
    LS_RETURN_IF_ERROR(hash.Add("label", text.label));
    for (const std::string& document : text.documents) LS_RETURN_IF_ERROR(hash.Add("document", document));
  }
  LS_ASSIGN_OR_RETURN(const std::string data_hash, hash.Finish());
  AddConfig(ToJson(data.config), data.settings);
  data.settings["the training data's hash"] = data_hash;
  return std::make_unique<TrainableTextClassifier>(std::move(data), variation);
}

}  // namespace longshort::models
