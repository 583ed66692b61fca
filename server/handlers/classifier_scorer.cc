#include "server/handlers/classifier_scorer.h"

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

// What a classifier computes for a text, and the answer that it becomes. Immutable.
class TextAnswer {
 public:
  TextAnswer(std::shared_ptr<const core::ServedClassifier> model, models::ClassifierOutput output,
             const CallNames& names)
      : model_(std::move(model)), output_(output), names_(names) {}
  virtual ~TextAnswer() = default;

  const core::ServedClassifier& model() const { return *model_; }
  models::ClassifierOutput output() const { return output_; }
  const CallNames& names() const { return names_; }

  virtual bool takes_pairs() const { return false; }
  // Completes "second_input must be unset, because the model ...".
  virtual const char* no_pairs_because() const = 0;
  virtual int64_t bytes_per_text() const = 0;
  virtual absl::Status CheckFits(int64_t texts) const = 0;
  // Called on the engine's thread.
  virtual TextResult Make(core::ItemResult result, std::vector<DocumentReading> readings) const = 0;

 private:
  const std::shared_ptr<const core::ServedClassifier> model_;
  const models::ClassifierOutput output_;
  const CallNames& names_;
};

class ClassAnswer final : public TextAnswer {
 public:
  ClassAnswer(std::shared_ptr<const core::ServedClassifier> model, ClassOptions classes, const CallNames& names)
      : TextAnswer(std::move(model), OutputOf(classes), names), classes_(classes) {}

  bool takes_pairs() const override { return model().info.documents == 2; }
  const char* no_pairs_because() const override { return "takes one document"; }
  int64_t bytes_per_text() const override { return MaxBytes(classes_, model().info); }
  absl::Status CheckFits(int64_t texts) const override {
    return CheckAnswerFits(classes_, model().info, texts, names());
  }
  TextResult Make(core::ItemResult result, std::vector<DocumentReading> readings) const override {
    return TextClassification{.classification = AnswerOf(std::move(result), classes_, model().info),
                              .documents = std::move(readings)};
  }

 private:
  const ClassOptions classes_;
};

class EmbeddingAnswer final : public TextAnswer {
 public:
  EmbeddingAnswer(std::shared_ptr<const core::ServedClassifier> model, models::ClassifierOutput output, bool normalize,
                  const CallNames& names)
      : TextAnswer(std::move(model), output, names), normalize_(normalize) {}

  const char* no_pairs_because() const override { return "embeds each document by itself"; }
  int64_t bytes_per_text() const override { return MaxEmbeddingBytes(model().info); }
  absl::Status CheckFits(int64_t texts) const override { return CheckEmbeddingsFit(model().info, texts, names()); }
  TextResult Make(core::ItemResult result, std::vector<DocumentReading> readings) const override {
    Embedding embedding = EmbeddingOf(std::move(result), normalize_);
    embedding.documents = std::move(readings);
    return embedding;
  }

 private:
  const bool normalize_;
};

class ItemListener final : public core::ClassificationListener {
 public:
  ItemListener(std::shared_ptr<const TextAnswer> answer, TextToScore& text, TextScorer::Done done)
      : answer_(std::move(answer)),
        tokens_(text.tokens()),
        done_(std::move(done)),
        readings_(std::move(text.readings)) {}

  void OnFinished(absl::StatusOr<core::ItemResult> result) override {
    if (!result.ok()) return done_(result.status());
    done_(ScoredText{.result = answer_->Make(*std::move(result), std::move(readings_)), .tokens = tokens_});
  }

 private:
  const std::shared_ptr<const TextAnswer> answer_;
  const int64_t tokens_;
  const TextScorer::Done done_;
  std::vector<DocumentReading> readings_;
};

class ClassifierScorer final : public TextScorer {
 public:
  ClassifierScorer(std::shared_ptr<const TextAnswer> answer, bool truncate)
      : answer_(std::move(answer)), truncate_(truncate) {}

  absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                   std::optional<int64_t> index) const override {
    const bool must_be_pair = answer_->takes_pairs();
    const bool may_be_pair = must_be_pair || answer_->model().info.joins_pairs;
    if (second.has_value() ? !may_be_pair : must_be_pair) {
      return absl::InvalidArgumentError(absl::StrCat(
          answer_->names().Of(SecondOf(index)),
          must_be_pair ? " is unset; it must be set, because the model takes two documents"
                       : absl::StrCat(" is set; it must be unset, because the model ", answer_->no_pairs_because())));
    }
    std::vector<NamedText> documents = {{.input = first, .path = FirstOf(index)}};
    if (second.has_value()) documents.push_back({.input = *second, .path = SecondOf(index)});
    return ReadDocuments(answer_->model(), truncate_, answer_->names(), documents);
  }

  int64_t AnswerBytes(int64_t texts, int64_t /*tokens*/) const override { return texts * answer_->bytes_per_text(); }

  absl::Status CheckAnswerFits(int64_t texts, int64_t /*tokens*/) const override { return answer_->CheckFits(texts); }

  absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const override {
    core::ClassificationRequest request;
    request.context = context;
    request.output = answer_->output();
    request.bytes = text.tokens() * static_cast<int64_t>(sizeof(int32_t));
    auto listener = std::make_shared<ItemListener>(answer_, text, std::move(done));
    request.item = models::ClassifierItem(models::TokenItem{.documents = std::move(text.documents)});
    return answer_->model().engine->Classify(std::move(request), std::move(listener));
  }

 private:
  const std::shared_ptr<const TextAnswer> answer_;
  const bool truncate_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeClassScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                            const ScoreOptions& options, const CallNames& names) {
  LS_ASSIGN_OR_RETURN(const ClassOptions classes, ReadClassAnswer(options.classes, model->info, names));
  return std::make_unique<ClassifierScorer>(std::make_shared<ClassAnswer>(std::move(model), classes, names),
                                            options.truncate);
}

absl::StatusOr<std::unique_ptr<TextScorer>> MakeEmbeddingScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                                const EmbedOptions& options, const CallNames& names) {
  LS_ASSIGN_OR_RETURN(const models::ClassifierOutput output, OutputOf(options.pooling, model->info, names));
  return std::make_unique<ClassifierScorer>(
      std::make_shared<EmbeddingAnswer>(std::move(model), output, options.normalize, names), options.truncate);
}

}  // namespace longshort::server
