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
#include "models/train/trainable_classifier.h"
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
  };

  TrainableTextClassifier(Data data, const TextVariationOptions& variation)
      : data_(std::move(data)), variation_(variation) {}

  int64_t training_examples() const override { return data_.train.size(); }
  int64_t held_out_examples() const override { return data_.held_out.size(); }

  std::vector<NamedParameter> InitialParameters(uint64_t seed) const override {
    return longshort::models::InitialParameters(TextClassifierTensors(data_.config), seed);
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
  // of the piece are masked, too, but not its first, so that at least one token is left.
  std::vector<int32_t> Varied(std::vector<int32_t> document, RandomDraws& random) const {
    int64_t first = 0;
    const int64_t longer_by = static_cast<int64_t>(document.size()) - variation_.crop_tokens;
    if (variation_.crop_tokens > 0 && longer_by > 0) {
      first = random.Below(longer_by + 1);
      document.resize(first + variation_.crop_tokens);
      std::fill(document.begin(), document.begin() + first, 0);
    }
    if (variation_.masked_tokens > 0) {
      for (size_t i = first + 1; i < document.size(); ++i) {
        if (random.Uniform(0, 1) < variation_.masked_tokens) document[i] = 0;
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

}  // namespace

absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(
    const TrainingFiles& files, const TextVariationOptions& variation) {
  TrainableTextClassifier::Data data;
  LS_ASSIGN_OR_RETURN(const std::string config, ReadTrainingFile(files.config));
  LS_ASSIGN_OR_RETURN(data.config, ParseTextClassifierConfig(config, files.config));
  data.files.push_back({"config.json", config});
  std::string vocabulary;
  if (!files.vocabulary.empty()) {
    if (data.config.tokenizer == DocumentTokenizerKind::kBytesPlusOne) {
      return absl::InvalidArgumentError(
          absl::StrCat("--vocabulary=", files.vocabulary, ": the tokenizer of ", files.config, " has no vocabulary"));
    }
    LS_ASSIGN_OR_RETURN(vocabulary, ReadTrainingFile(files.vocabulary));
    data.files.push_back({"vocabulary.txt", vocabulary});
  }
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TextEncoder> tokenizer,
                      MakeDocumentTokenizer(data.config, vocabulary, files.vocabulary));
  if (tokenizer == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(files.config, ": its tokenizer does not accept text"));
  }
  LS_ASSIGN_OR_RETURN(const std::string train, ReadTrainingFile(files.train));
  LS_ASSIGN_OR_RETURN(data.train, TokeniseTexts(train, files.train, data.config, *tokenizer, data.labels));
  LS_ASSIGN_OR_RETURN(const std::string held_out, ReadTrainingFile(files.held_out));
  LS_ASSIGN_OR_RETURN(data.held_out, TokeniseTexts(held_out, files.held_out, data.config, *tokenizer, data.labels));
  data.files.push_back({"labels.txt", LabelsText(data.labels)});

  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  LS_RETURN_IF_ERROR(hash.Add("vocabulary", vocabulary));
  LS_RETURN_IF_ERROR(hash.Add("train", train));
  LS_ASSIGN_OR_RETURN(const std::string data_hash, hash.Finish());
  AddConfig(ToJson(data.config), data.settings);
  data.settings["the training data's hash"] = data_hash;
  return std::make_unique<TrainableTextClassifier>(std::move(data), variation);
}

}  // namespace longshort::models
