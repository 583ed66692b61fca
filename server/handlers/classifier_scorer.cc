#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/class_answer.h"
#include "server/handlers/text_reader.h"
#include "server/handlers/text_scorer.h"

namespace longshort {
namespace {

class ClassesListener final : public ClassificationListener {
 public:
  ClassesListener(std::shared_ptr<const ServedClassifier> model, const ClassAnswer& answer, const TextToScore& text,
                  TextScorer::Done done)
      : model_(std::move(model)), answer_(answer), tokens_(text.tokens()), done_(std::move(done)) {
    for (size_t i = 0; i < text.documents.size(); ++i) {
      documents_.push_back(
          {.token_count = static_cast<int64_t>(text.documents[i].size()), .truncated = text.truncated[i]});
    }
  }

  void OnFinished(absl::StatusOr<ItemScores> scores) override {
    if (!scores.ok()) return done_(scores.status());
    TextClassification result{.classification = AnswerOf(*std::move(scores), answer_, model_->info),
                              .documents = std::move(documents_)};
    done_(ScoredText{.result = std::move(result), .tokens = tokens_});
  }

 private:
  const std::shared_ptr<const ServedClassifier> model_;
  const ClassAnswer answer_;
  const int64_t tokens_;
  const TextScorer::Done done_;
  std::vector<DocumentReading> documents_;
};

class ClassifierScorer final : public TextScorer {
 public:
  ClassifierScorer(std::shared_ptr<const ServedClassifier> model, const ClassAnswer& answer, bool truncate,
                   const RequestLimits& limits, const CallNames& names)
      : model_(std::move(model)),
        answer_(answer),
        truncate_(truncate),
        bytes_per_text_(MostBytes(answer, model_->info)),
        limits_(limits),
        names_(names) {}

  absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                   std::optional<int64_t> index) const override {
    const FieldPath second_path = {.field = CallField::kSecondText, .index = index};
    const bool pairs = model_->info.documents == 2;
    if (pairs != second.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          names_.Of(second_path), pairs ? " is unset; it must be set, because the model takes two documents"
                                        : " is set; it must be unset, because the model takes one document"));
    }
    TextToScore text;
    LS_RETURN_IF_ERROR(AddDocument({.input = first, .path = {.field = CallField::kText, .index = index}}, text));
    if (pairs) LS_RETURN_IF_ERROR(AddDocument({.input = *second, .path = second_path}, text));
    return text;
  }

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * bytes_per_text_; }

  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/) const override {
    return longshort::CheckAnswerFits(answer_, model_->info, texts, limits_, names_);
  }

  absl::Status Submit(TextToScore text, const RequestContext& context, Done done) const override {
    auto listener = std::make_shared<ClassesListener>(model_, answer_, text, std::move(done));
    ClassificationRequest request;
    request.context = context;
    request.bytes = text.tokens() * static_cast<int64_t>(sizeof(int32_t));
    request.item = ClassifierItem(TokenItem{.documents = std::move(text.documents)});
    return model_->engine->Classify(std::move(request), std::move(listener));
  }

 private:
  absl::Status AddDocument(const NamedText& named, TextToScore& text) const {
    const int64_t most = model_->info.max_document_tokens;
    LS_ASSIGN_OR_RETURN(DocumentBeginning document, ReadBeginning(named, names_, EncoderOf(*model_), most));
    const bool too_long = document.tokens > most;
    if (too_long && !truncate_) {
      return FieldError(absl::StrCat("number of tokens of ", names_.Of(named.path)), document.tokens,
                        absl::StrCat("in [1, ", most, "] (more with ", names_.Of(CallField::kTruncate),
                                     ", which reads the first ", most, ")"));
    }
    if (std::all_of(document.ids.begin(), document.ids.end(), [](int32_t id) { return id == 0; })) {
      return absl::InvalidArgumentError(
          absl::StrCat(names_.Of(named.path), " is padding (id 0) alone; it must have at least one other token"));
    }
    text.documents.push_back(std::move(document.ids));
    text.truncated.push_back(too_long);
    return absl::OkStatus();
  }

  const std::shared_ptr<const ServedClassifier> model_;
  const ClassAnswer answer_;
  const bool truncate_;
  const int64_t bytes_per_text_;
  const RequestLimits limits_;
  const CallNames& names_;
};

absl::Status CheckUnsetForClassifier(CallField field, int64_t value, const CallNames& names) {
  if (value == 0) return absl::OkStatus();
  return FieldError(names.Of(field), value, "unset: the model is a classifier");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassifierScorer(std::shared_ptr<const ServedClassifier> model,
                                                                 const ScoreOptions& options,
                                                                 const RequestLimits& limits, const CallNames& names) {
  LS_RETURN_IF_ERROR(
      CheckUnsetForClassifier(CallField::kTokenLogProbabilities, options.token_log_probabilities ? 1 : 0, names));
  LS_RETURN_IF_ERROR(CheckUnsetForClassifier(CallField::kTopAlternatives, options.top_alternatives, names));
  LS_ASSIGN_OR_RETURN(const ClassAnswer answer, ReadClassAnswer(options.classes, model->info, names));
  return std::make_unique<ClassifierScorer>(std::move(model), answer, options.truncate, limits, names);
}

}  // namespace longshort
