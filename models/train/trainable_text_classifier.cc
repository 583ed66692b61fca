#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "models/families/text_classifier/text_classifier_config.h"
#include "models/families/text_classifier/text_network.h"
#include "models/train/divided_data.h"
#include "models/train/held_out_figures.h"
#include "models/train/labelled_data.h"
#include "models/train/labelled_texts.h"
#include "models/train/starting_model.h"
#include "models/train/tokenised_texts.h"
#include "models/train/trainable_classifier.h"
#include "models/train/training_run.h"
#include "models/weights/model_directory.h"

namespace longshort::models {
namespace {

constexpr std::string_view kHead = "seq_classifer.";
// The layer with a row for each class.
constexpr std::string_view kHeadOut = "seq_classifer.mlpblock.2.";
constexpr std::string_view kHeadWeight = "seq_classifer.mlpblock.2.weight";
constexpr std::string_view kHeadBias = "seq_classifer.mlpblock.2.bias";

using Documents = std::vector<std::vector<int32_t>>;

struct Texts {
  TextClassifierConfig config;
  TokenisedTexts train, held_out, validation;
  NumberScale scale;  // of a regression
};

class TrainableTextClassifier final : public TrainableClassifier {
 public:
  TrainableTextClassifier(ClassifierData data, Texts texts, const TextVariationOptions& variation)
      : TrainableClassifier(std::move(data)), texts_(std::move(texts)), variation_(variation) {}

  // Sorts by falling length, so that the threads that share a batch's groups end at about the same time.
  void Arrange(std::vector<Draw>& batch) const override {
    std::stable_sort(batch.begin(), batch.end(), [this](const Draw& a, const Draw& b) {
      return texts_.train.Tokens(a.example) > texts_.train.Tokens(b.example);
    });
  }

  Scores Train(const std::vector<NamedParameter>& parameters, absl::Span<const Draw> draws,
               uint64_t seed) const override {
    Documents documents;
    std::vector<Target> targets;
    for (const Draw& draw : draws) {
      RandomDraws random = VariationOf(draw, seed);
      for (const std::vector<int32_t>& document : texts_.train.items[draw.example].documents) {
        documents.push_back(Varied(document, random));
      }
      targets.push_back(data().description.train[draw.example]);
    }
    Dropout dropout(variation_.dropout, DropoutSeed(draws.front().number, seed));
    return Run(parameters, documents, targets, &dropout);
  }

  Scores Evaluate(const std::vector<NamedParameter>& parameters, EvaluatedPart part, int64_t first,
                  int64_t count) const override {
    const TokenisedTexts& texts = part == EvaluatedPart::kHeldOut ? texts_.held_out : texts_.validation;
    Documents documents;
    for (int64_t item = first; item < first + count; ++item) {
      const Documents& of_item = texts.items[item].documents;
      documents.insert(documents.end(), of_item.begin(), of_item.end());
    }
    return Run(parameters, documents, absl::MakeConstSpan(TargetsOf(part)).subspan(first, count));
  }

  // The last layer of a regression answers scaled numbers in training, and the numbers themselves when it is served.
  // Large ones exceed float16.
  WrittenWeights Written(const std::vector<NamedParameter>& trained) const override {
    if (texts_.config.problem_type != ProblemType::kRegression) return {.weights = trained, .exact = {}};
    WrittenWeights written{.weights = trained, .exact = {kHeadWeight, kHeadBias}};
    for (NamedParameter& weight : written.weights) {
      const at::Tensor value = weight.value.detach();
      if (weight.name == kHeadWeight) weight.value = value * texts_.scale.deviation;
      if (weight.name == kHeadBias) weight.value = value * texts_.scale.deviation + texts_.scale.mean;
    }
    return written;
  }

 private:
  // A piece of the document at its original position: the tokens before it are masked, which costs nothing. Some tokens
  // of the piece are masked, too, but not its first, so that at least one token is left. A first token that is
  // classified stays, and the piece is behind it, because masked tokens of such a model have no positions.
  std::vector<int32_t> Varied(std::vector<int32_t> document, RandomDraws& random) const {
    const auto padding = static_cast<int32_t>(texts_.config.padding_id);
    const int64_t kept = texts_.config.cls == ClsKind::kFirstToken ? 1 : 0;
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
             absl::Span<const Target> targets, Dropout* dropout = nullptr) const {
    const TextNetwork network = MakeTextNetwork(texts_.config, ByName(parameters));
    const std::vector<absl::Span<const int32_t>> spans(documents.begin(), documents.end());
    return {.logits = network.Logits(std::make_shared<PackedDocuments>(network.Pack(spans)), dropout),
            .targets = (TargetRows(targets, texts_.config.problem_type, texts_.config.classes) - texts_.scale.mean) /
                       texts_.scale.deviation,
            .statistics = {}};
  }

  Texts texts_;
  TextVariationOptions variation_;
};

// The problem of --problem, or else of the config.
absl::Status ChooseProblem(const TrainingFiles& files, const std::string& name, TextClassifierConfig& config) {
  if (!files.problem || *files.problem == config.problem_type) return absl::OkStatus();
  if (!files.config.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": its problem_type is not that of --problem; change one of them, or leave out --problem"));
  }
  config.problem_type = *files.problem;
  return absl::OkStatus();
}

// A model of bytes for these texts.
TextClassifierConfig PresetFor(const std::string& size, ProblemType problem, absl::Span<const LabelledExample> texts) {
  TextClassifierConfig config;
  config.problem_type = problem;
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
  for (const LabelledExample& text : texts) longest = std::max(longest, text.content.front().size());
  constexpr int64_t kLongest = 8192;
  config.max_sequence_length = 256;
  while (config.max_sequence_length < kLongest && config.max_sequence_length <= static_cast<int64_t>(longest)) {
    config.max_sequence_length *= 2;
  }
  return config;
}

// The content of the tokenizer's file; "" if it reads none.
absl::StatusOr<std::string> ReadVocabulary(const TrainingFiles& files, const GivenForm& form,
                                           DocumentTokenizerKind tokenizer) {
  const std::string file(TokenizerFile(tokenizer));
  if (file.empty()) {
    if (files.vocabulary.empty()) return "";
    return absl::InvalidArgumentError(
        absl::StrCat("--vocabulary=", files.vocabulary, ": the tokenizer of ", form.name, " has no vocabulary"));
  }
  if (form.from) {
    const bool is_bpe = tokenizer == DocumentTokenizerKind::kByteLevelBpe;
    return (is_bpe ? form.from->tokenizer_text : form.from->vocabulary_text).value_or("");
  }
  if (files.vocabulary.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(form.name, ": its tokenizer reads ", file, "; give it with --vocabulary"));
  }
  return ReadTextFile(files.vocabulary, size_t{1} << 32);
}

void NoteCutTexts(const TextClassifierConfig& config, const TokenisedTexts& train, const TokenisedTexts& held_out,
                  std::vector<std::string>& notes) {
  const int64_t cut = train.cut + held_out.cut;
  if (cut == 0) return;
  const char* const unit = config.tokenizer == DocumentTokenizerKind::kBytesPlusOne ? " bytes" : " tokens";
  notes.push_back(absl::StrCat(
      cut, " of ", train.size() + held_out.size(), " texts are cut after ", config.MaxDocumentTokens(), unit,
      ", which is all that the model reads; the longest has ", std::max(train.longest, held_out.longest), "."));
}

// Sets the call with a held-out text or image.
void AddCall(absl::Span<const LabelledExample> texts, bool are_images, ClassifierData& data) {
  if (are_images) {
    data.call = absl::StrCat("classify ", ShellWord(texts.front().place));
    return;
  }
  data.call = "classify FILE";
  if (texts.front().content.size() == 2) data.call = "classify --second=SECOND_FILE FIRST_FILE";
  for (const LabelledExample& text : texts) {
    if (text.content.size() == 1 && data.input.empty()) data.input = InputCommand(text.content.front());
  }
  if (!data.input.empty()) data.call = "classify -";
}

absl::StatusOr<std::string> HashOf(const std::string& vocabulary, absl::Span<const LabelledExample> texts) {
  LS_ASSIGN_OR_RETURN(FingerprintHash hash, FingerprintHash::Create());
  LS_RETURN_IF_ERROR(hash.Add("vocabulary", vocabulary));
  for (const LabelledExample& text : texts) {
    for (const std::string& label : text.labels) LS_RETURN_IF_ERROR(hash.Add("label", label));
    for (const std::string& document : text.content) LS_RETURN_IF_ERROR(hash.Add("document", document));
  }
  return hash.Finish();
}

// Texts, or images in a folder for each class.
absl::StatusOr<std::vector<LabelledExample>> ReadExamples(const std::string& path, bool are_images,
                                                          const TextFormat& format) {
  if (!are_images) return ReadLabelledTexts(path, format);
  if (format.problem == ProblemType::kSingleLabel) return ReadClassFolders(path);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the folders of images have single labels, but the problem of the model is another one"));
}

absl::StatusOr<DividedData> ReadAndDivide(const TrainingFiles& files, bool are_images, const TextFormat& format,
                                          std::vector<LabelledExample> train) {
  std::vector<LabelledExample> held_out;
  if (!files.held_out.empty()) {
    LS_ASSIGN_OR_RETURN(held_out, ReadExamples(files.held_out, are_images, format));
  }
  Division division = files.division;
  division.problem = format.problem;
  return Divide(std::move(train), std::move(held_out), division, files.train);
}

// The weights that the run begins with, and a new last layer if the labels are new.
absl::StatusOr<std::vector<NamedParameter>> BeginOf(const ModelDirectory& from, int64_t classes,
                                                    absl::Span<const std::string> labels,
                                                    absl::Span<const TensorShape> tensors, const Texts& texts) {
  const std::string head(classes == 0 ? kHead : kHeadOut);
  LS_ASSIGN_OR_RETURN(std::vector<NamedParameter> weights, StartingWeights(from, classes, labels, head, tensors));
  for (NamedParameter& weight : weights) {  // the reverse of Written
    const at::Tensor value = weight.value.detach();
    if (weight.name == kHeadWeight) weight.value = value / texts.scale.deviation;
    if (weight.name == kHeadBias) weight.value = (value - texts.scale.mean) / texts.scale.deviation;
  }
  return weights;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainableClassifier>> LoadTrainableTextClassifier(
    const TrainingFiles& files, const TextVariationOptions& variation) {
  ClassifierData data;
  Texts texts;
  LS_ASSIGN_OR_RETURN(const GivenForm form, ReadGivenForm(files));
  if (!form.config.empty()) {
    LS_ASSIGN_OR_RETURN(texts.config, ParseTextClassifierConfig(form.config, form.name));
  }
  LS_RETURN_IF_ERROR(ChooseProblem(files, form.name, texts.config));
  TextFormat format = files.format;
  format.problem = texts.config.problem_type;
  format.documents = texts.config.documents;
  const bool is_regression = format.problem == ProblemType::kRegression;
  if (is_regression && files.division.min_examples > 1) {
    return absl::InvalidArgumentError("--min-examples is for labels, but the labels of a regression are numbers");
  }
  const bool are_images = texts.config.tokenizer == DocumentTokenizerKind::kPixels;
  LS_ASSIGN_OR_RETURN(std::vector<LabelledExample> train, ReadExamples(files.train, are_images, format));
  if (form.config.empty()) texts.config = PresetFor(files.size, format.problem, train);
  LS_ASSIGN_OR_RETURN(const std::string vocabulary, ReadVocabulary(files, form, texts.config.tokenizer));
  const std::string tokenizer_file(TokenizerFile(texts.config.tokenizer));
  if (!vocabulary.empty()) data.files.push_back({tokenizer_file, vocabulary});
  const std::string vocabulary_name = form.from ? absl::StrCat(form.from->path, "/", tokenizer_file) : files.vocabulary;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TextEncoder> tokenizer,
                      MakeDocumentTokenizer(texts.config, vocabulary, vocabulary_name));
  if (tokenizer == nullptr && !are_images) {
    return absl::InvalidArgumentError(absl::StrCat(form.name, ": its tokenizer does not accept text"));
  }

  LS_ASSIGN_OR_RETURN(const DividedData divided, ReadAndDivide(files, are_images, format, std::move(train)));
  data.description = divided.description;
  // A regression answers one number, which has the column's name.
  const std::vector<std::string> labels = is_regression ? std::vector{format.label_column} : data.description.labels;
  const int64_t classes = texts.config.classes;
  if (files.config.empty()) texts.config.classes = std::ssize(labels);
  LS_RETURN_IF_ERROR(CheckTextClassifierConfig(texts.config, form.name));
  LS_RETURN_IF_ERROR(CheckLabelCount(labels, texts.config.classes, files.train));
  data.files.push_back({"config.json", files.config.empty() ? ToJson(texts.config) : form.config});
  data.files.push_back({"labels.txt", LabelsText(labels)});

  if (is_regression) texts.scale = ScaleOf(data.description.train);
  if (texts.scale.deviation == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.train, ": all numbers to train on are ", texts.scale.mean, "; at least two must differ"));
  }
  const auto tokenise = [&](absl::Span<const LabelledExample> part) {
    return are_images ? PixelSequences(part, texts.config) : TokeniseTexts(part, texts.config, *tokenizer);
  };
  LS_ASSIGN_OR_RETURN(texts.train, tokenise(divided.train));
  LS_ASSIGN_OR_RETURN(texts.held_out, tokenise(divided.held_out));
  LS_ASSIGN_OR_RETURN(texts.validation, tokenise(divided.validation));
  NoteCutTexts(texts.config, texts.train, texts.held_out, data.description.notes);
  AddCall(divided.held_out, are_images, data);
  data.tensors = TextClassifierTensors(texts.config);
  data.official = InitialWeights::kLongRangeArena;
  if (form.from) {
    LS_ASSIGN_OR_RETURN(data.begin, BeginOf(*form.from, classes, labels, data.tensors, texts));
    AddStartingModel(*form.from, data.settings);
  }
  LS_ASSIGN_OR_RETURN(data.settings["the training data's hash"], HashOf(vocabulary, divided.train));
  AddConfig(ToJson(texts.config), data.settings);
  data.settings["--crop-tokens"] = absl::StrCat(variation.crop_tokens);
  data.settings["--masked-tokens"] = absl::StrCat(variation.masked_tokens);
  if (variation.dropout.rows > 0) data.settings["--dropout"] = absl::StrCat(variation.dropout.rows);
  if (variation.dropout.attention > 0) data.settings["--attention-dropout"] = absl::StrCat(variation.dropout.attention);
  return std::make_unique<TrainableTextClassifier>(std::move(data), std::move(texts), variation);
}

}  // namespace longshort::models
