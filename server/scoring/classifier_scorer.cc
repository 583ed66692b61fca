#include "server/scoring/classifier_scorer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/class_answer.h"
#include "server/requests/field_error.h"
#include "server/requests/input_reader.h"

namespace longshort {
namespace {

class Listener final : public ClassificationListener {
 public:
  Listener(std::shared_ptr<const ServedClassifier> model, const ClassAnswer& answer, const TextToScore& text,
           TextScorer::Done done)
      : model_(std::move(model)), answer_(answer), tokens_(text.tokens()), done_(std::move(done)) {
    for (size_t i = 0; i < text.documents.size(); ++i) {
      v1::DocumentReading& reading = *classification_.add_documents();
      reading.set_token_count(static_cast<int64_t>(text.documents[i].size()));
      reading.set_truncated(text.truncated[i]);
    }
  }

  void OnFinished(absl::StatusOr<ItemScores> scores) override {
    if (!scores.ok()) return done_(scores.status());
    *classification_.mutable_classification() = ToMessage(*scores, answer_, model_->info);
    done_(ScoredText{.result = std::move(classification_), .tokens = tokens_, .timings = scores->timings});
  }

 private:
  const std::shared_ptr<const ServedClassifier> model_;
  const ClassAnswer answer_;
  const int64_t tokens_;
  const TextScorer::Done done_;
  v1::TextClassification classification_;
};

class ClassifierScorer final : public TextScorer {
 public:
  ClassifierScorer(std::shared_ptr<const ServedClassifier> model, const ClassAnswer& answer, bool truncate,
                   const RequestLimits& limits)
      : model_(std::move(model)),
        answer_(answer),
        truncate_(truncate),
        bytes_per_text_(MostBytes(answer, model_->info)),
        limits_(limits) {}

  absl::StatusOr<TextToScore> Read(const v1::Input& first, const std::string& first_name, const v1::Input* second,
                                   const std::string& second_name) const override {
    const bool pairs = model_->info.documents == 2;
    if (pairs != (second != nullptr)) {
      return absl::InvalidArgumentError(
          absl::StrCat(second_name, pairs ? " is unset; it must be set, because the model takes two documents"
                                          : " is set; it must be unset, because the model takes one document"));
    }
    TextToScore text;
    LS_RETURN_IF_ERROR(AddDocument(first, first_name, text));
    if (pairs) LS_RETURN_IF_ERROR(AddDocument(*second, second_name, text));
    return text;
  }

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * bytes_per_text_; }

  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/) const override {
    return longshort::CheckAnswerFits(answer_, model_->info, texts, limits_);
  }

  absl::Status Submit(TextToScore text, const RequestContext& context, Done done) const override {
    auto listener = std::make_shared<Listener>(model_, answer_, text, std::move(done));
    ClassificationRequest request;
    request.context = context;
    request.bytes = text.tokens() * static_cast<int64_t>(sizeof(int32_t));
    request.item = ClassifierItem(TokenItem{.documents = std::move(text.documents)});
    return model_->engine->Classify(std::move(request), std::move(listener));
  }

 private:
  absl::Status AddDocument(const v1::Input& input, const std::string& name, TextToScore& text) const {
    const int64_t most = model_->info.max_document_tokens;
    LS_ASSIGN_OR_RETURN(DocumentBeginning document, ReadBeginning(input, name, EncoderOf(*model_), most));
    const bool too_long = document.tokens > most;
    if (too_long && !truncate_) {
      return FieldError(absl::StrCat("number of tokens of ", name), document.tokens,
                        absl::StrCat("in [1, ", most, "] (more with truncate, which reads the first ", most, ")"));
    }
    if (std::all_of(document.ids.begin(), document.ids.end(), [](int32_t id) { return id == 0; })) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is padding (id 0) alone; it must have at least one other token"));
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
};

absl::Status CheckUnset(const char* field, int64_t value) {
  if (value == 0) return absl::OkStatus();
  return FieldError(field, value, "unset: the model is a classifier");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassifierScorer(std::shared_ptr<const ServedClassifier> model,
                                                                 const v1::ScoreTextsOptions& options,
                                                                 const RequestLimits& limits) {
  LS_RETURN_IF_ERROR(CheckUnset("token_log_probabilities", options.token_log_probabilities()));
  LS_RETURN_IF_ERROR(CheckUnset("top_alternatives", options.top_alternatives()));
  LS_ASSIGN_OR_RETURN(const ClassAnswer answer, ReadClassAnswer(options.top_k(), options.all_logits(), model->info));
  return std::make_unique<ClassifierScorer>(std::move(model), answer, options.truncate(), limits);
}

}  // namespace longshort
