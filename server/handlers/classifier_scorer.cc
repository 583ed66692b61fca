#include "server/handlers/classifier_scorer.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/handlers/class_answer.h"
#include "server/handlers/document_reader.h"
#include "server/handlers/embedding.h"
#include "server/handlers/text_reader.h"

namespace longshort::server {
namespace {

// What a classifier computes for a text, and the answer that it becomes.
struct TextAnswer {
  models::ClassifierOutput output = models::ClassifierOutput::kLogits;
  bool pairs = false;
  const char* no_pairs_because = "";  // completes "second_input must be unset, because ..."
  int64_t bytes_per_text = 0;
  std::function<absl::Status(int64_t texts)> check_fits;
  // Called on the engine's thread. Holds the model.
  std::function<TextResult(core::ItemResult, std::vector<DocumentReading>)> make;
};

class ItemListener final : public core::ClassificationListener {
 public:
  ItemListener(const TextAnswer& answer, TextToScore& text, TextScorer::Done done)
      : make_(answer.make), tokens_(text.tokens()), done_(std::move(done)), readings_(std::move(text.readings)) {}

  void OnFinished(absl::StatusOr<core::ItemResult> result) override {
    if (!result.ok()) return done_(result.status());
    done_(ScoredText{.result = make_(*std::move(result), std::move(readings_)), .tokens = tokens_});
  }

 private:
  const std::function<TextResult(core::ItemResult, std::vector<DocumentReading>)> make_;
  const int64_t tokens_;
  const TextScorer::Done done_;
  std::vector<DocumentReading> readings_;
};

class ClassifierScorer final : public TextScorer {
 public:
  ClassifierScorer(std::shared_ptr<const core::ServedClassifier> model, TextAnswer answer, bool truncate,
                   const CallNames& names)
      : model_(std::move(model)), answer_(std::move(answer)), truncate_(truncate), names_(names) {}

  absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                   std::optional<int64_t> index) const override {
    const bool may_be_pair = answer_.pairs || model_->info.joins_pairs;
    if (second.has_value() ? !may_be_pair : answer_.pairs) {
      return absl::InvalidArgumentError(absl::StrCat(
          names_.Of(SecondOf(index)),
          answer_.pairs ? " is unset; it must be set, because the model takes two documents"
                        : absl::StrCat(" is set; it must be unset, because the model ", answer_.no_pairs_because)));
    }
    std::vector<NamedText> documents = {{.input = first, .path = FirstOf(index)}};
    if (second.has_value()) documents.push_back({.input = *second, .path = SecondOf(index)});
    return ReadDocuments(*model_, truncate_, names_, documents);
  }

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * answer_.bytes_per_text; }

  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/) const override { return answer_.check_fits(texts); }

  absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const override {
    core::ClassificationRequest request;
    request.context = context;
    request.output = answer_.output;
    request.bytes = text.tokens() * static_cast<int64_t>(sizeof(int32_t));
    auto listener = std::make_shared<ItemListener>(answer_, text, std::move(done));
    request.item = models::ClassifierItem(models::TokenItem{.documents = std::move(text.documents)});
    return model_->engine->Classify(std::move(request), std::move(listener));
  }

 private:
  const std::shared_ptr<const core::ServedClassifier> model_;
  const TextAnswer answer_;
  const bool truncate_;
  const CallNames& names_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                            const ScoreOptions& options, const CallNames& names) {
  LS_ASSIGN_OR_RETURN(const ClassOptions classes, ReadClassAnswer(options.classes, model->info, names));
  TextAnswer answer;
  answer.output = OutputOf(classes);
  answer.pairs = model->info.documents == 2;
  answer.no_pairs_because = "takes one document";
  answer.bytes_per_text = MaxBytes(classes, model->info);
  answer.check_fits = [model, classes, &names](int64_t texts) {
    return CheckAnswerFits(classes, model->info, texts, names);
  };
  answer.make = [model, classes](core::ItemResult result, std::vector<DocumentReading> readings) {
    return TextClassification{.classification = AnswerOf(std::move(result), classes, model->info),
                              .documents = std::move(readings)};
  };
  return std::make_unique<ClassifierScorer>(std::move(model), std::move(answer), options.truncate, names);
}

absl::StatusOr<std::unique_ptr<TextScorer>> MakeEmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                                const EmbedOptions& options, const CallNames& names) {
  TextAnswer answer;
  LS_ASSIGN_OR_RETURN(answer.output, OutputOf(options.pooling, model->info, names));
  answer.no_pairs_because = "embeds each document by itself";
  answer.bytes_per_text = MaxEmbeddingBytes(model->info);
  answer.check_fits = [model, &names](int64_t texts) { return CheckEmbeddingsFit(model->info, texts, names); };
  answer.make = [model, normalize = options.normalize](core::ItemResult result, std::vector<DocumentReading> readings) {
    Embedding embedding = EmbeddingOf(std::move(result), normalize);
    embedding.documents = std::move(readings);
    return embedding;
  };
  return std::make_unique<ClassifierScorer>(std::move(model), std::move(answer), options.truncate, names);
}

}  // namespace longshort::server
