#include "server/handlers/text_scorer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/call_names.h"
#include "server/handlers/item_answer.h"
#include "server/handlers/text_reader.h"

namespace longshort::server {
namespace {

// gen_ai.operation.name: OpenTelemetry defines none for scoring.
constexpr char kScoringOperation[] = "score";

// Upper bounds of wire sizes: of a score without its tokens, and of a described token or alternative.
constexpr int64_t kScoreBytes = 128;
constexpr int64_t kTokenBytes = 24;

absl::Status CheckUnset(std::string_view field, int64_t value, const CallNames& names, const char* kind) {
  if (value == 0) return absl::OkStatus();
  return FieldError(names.Of(field), value, absl::StrCat("unset: the model is a ", kind));
}

TextScore AnswerOf(core::Score score, int64_t token_count, const core::ServedLanguageModel& model) {
  TextScore answer{.log_likelihood = score.total_log_probability,
                   .token_count = token_count,
                   .scored_token_count = score.scored_tokens,
                   .tokens = std::move(score.tokens),
                   .timings = score.timings};
  if (model.tokenizer != nullptr && score.scored_tokens > 0) {
    const double bits = -score.total_log_probability / std::log(2.0) / static_cast<double>(score.scored_tokens);
    (model.tokenizer->unit() == models::Tokenizer::Unit::kByte ? answer.bits_per_byte : answer.bits_per_character) =
        bits;
  }
  if (score.session_tokens > 0) answer.session_tokens = score.session_tokens;
  return answer;
}

class ScoreListener final : public core::ScoringListener {
 public:
  ScoreListener(std::shared_ptr<const core::ServedLanguageModel> model, int64_t tokens, TextScorer::Done done)
      : model_(std::move(model)), tokens_(tokens), done_(std::move(done)) {}

  void OnFinished(absl::StatusOr<core::Score> score) override {
    if (!score.ok()) return done_(score.status());
    const int64_t cached_tokens = score->reused_tokens;
    done_(ScoredText{
        .result = AnswerOf(*std::move(score), tokens_, *model_), .tokens = tokens_, .cached_tokens = cached_tokens});
  }

 private:
  const std::shared_ptr<const core::ServedLanguageModel> model_;
  const int64_t tokens_;
  const TextScorer::Done done_;
};

// Computes the likelihood of texts.
class LanguageModelScorer final : public TextScorer {
 public:
  LanguageModelScorer(std::shared_ptr<const core::ServedLanguageModel> model, const ScoreOptions& options,
                      const RequestLimits& limits, const CallNames& names)
      : model_(std::move(model)),
        describe_tokens_(options.token_log_probabilities),
        top_alternatives_(describe_tokens_ ? options.top_alternatives : 0),
        limits_(limits),
        names_(names) {}

  absl::StatusOr<TextToScore> Read(const TextInput& first, const std::optional<TextInput>& second,
                                   std::optional<int64_t> index) const override {
    if (second.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(names_.Of(SecondOf(index)), " is set; it must be unset, because the model is a language model"));
    }
    TextToScore text;
    LS_ASSIGN_OR_RETURN(text.documents.emplace_back(),
                        ReadText({.input = first, .path = FirstOf(index)}, names_, *model_, limits_.prompt_tokens));
    return text;
  }

  int64_t AnswerBytes(int64_t texts, int64_t tokens) const override {
    return texts * kScoreBytes + DescribedTokens(tokens) * kTokenBytes;
  }

  absl::Status CheckAnswerFits(int64_t /*texts*/, int64_t tokens, int64_t /*max_bytes*/) const override {
    const auto name = [&] {
      return absl::StrCat("number of tokens to return (log-probabilities, times 1 + ", names_.Of("top_alternatives"),
                          ")");
    };
    return CheckFieldRange(name, DescribedTokens(tokens), 0, limits_.described_tokens);
  }

  absl::Status Submit(TextToScore text, const core::RequestContext& context, Done done) const override {
    auto listener = std::make_shared<ScoreListener>(model_, text.tokens(), std::move(done));
    core::ScoringRequest request;
    request.context = context;
    request.tokens = std::move(text.documents.front());
    request.session = std::move(text.session);
    request.log_probabilities = describe_tokens_;
    request.top_alternatives = top_alternatives_;
    return model_->engine->Score(std::move(request), std::move(listener));
  }

 private:
  int64_t DescribedTokens(int64_t tokens) const { return describe_tokens_ ? tokens * (1 + top_alternatives_) : 0; }

  const std::shared_ptr<const core::ServedLanguageModel> model_;
  const bool describe_tokens_;
  const int64_t top_alternatives_;
  const RequestLimits limits_;
  const CallNames& names_;
};

absl::StatusOr<std::unique_ptr<TextScorer>> MakeScorer(std::shared_ptr<const core::ServedLanguageModel> model,
                                                       const ScoreOptions& options, const RequestLimits& limits,
                                                       const CallNames& names) {
  constexpr char kKind[] = "language model";
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return names.Of("top_alternatives"); }, options.top_alternatives, 0,
                                     limits.top_alternatives));
  LS_RETURN_IF_ERROR(CheckUnset("truncate", options.truncate ? 1 : 0, names, kKind));
  LS_RETURN_IF_ERROR(CheckUnset("top_k", options.classes.top_k, names, kKind));
  LS_RETURN_IF_ERROR(CheckUnset("all_logits", options.classes.all_logits ? 1 : 0, names, kKind));
  LS_RETURN_IF_ERROR(CheckUnset("embedding", options.embedding.has_value() ? 1 : 0, names, kKind));
  return std::make_unique<LanguageModelScorer>(std::move(model), options, limits, names);
}

absl::StatusOr<std::unique_ptr<TextScorer>> MakeScorer(std::shared_ptr<const core::ServedClassifier> model,
                                                       const ScoreOptions& options, const CallNames& names) {
  constexpr char kKind[] = "classifier";
  LS_RETURN_IF_ERROR(CheckUnset("token_log_probabilities", options.token_log_probabilities ? 1 : 0, names, kKind));
  LS_RETURN_IF_ERROR(CheckUnset("top_alternatives", options.top_alternatives, names, kKind));
  if (!options.embedding.has_value()) return MakeClassScorer(model, options, names);
  if (options.classes.top_k != 0 || options.classes.all_logits) {
    return absl::InvalidArgumentError(absl::StrCat(names.Of("embedding"), " is set with ", names.Of("top_k"), " or ",
                                                   names.Of("all_logits"), "; an embedding has no classes"));
  }
  return MakeEmbeddingScorer(std::move(model), *options.embedding, names);
}

}  // namespace

FieldPath FirstOf(std::optional<int64_t> index) {
  return {.field = index.has_value() ? "inputs" : "input", .index = index};
}
FieldPath SecondOf(std::optional<int64_t> index) {
  return {.field = index.has_value() ? "second_inputs" : "second_input", .index = index};
}

int64_t TextToScore::tokens() const {
  int64_t tokens = 0;
  for (const std::vector<int32_t>& document : documents) tokens += static_cast<int64_t>(document.size());
  return tokens;
}

const char* OperationOfTexts(const core::ServedModel& model, const ScoreOptions& options) {
  if (model.language_model() != nullptr) return kScoringOperation;
  return options.embedding.has_value() ? kEmbeddingOperation : kClassificationOperation;
}

absl::StatusOr<std::unique_ptr<TextScorer>> TextScorer::Make(std::shared_ptr<const core::ServedModel> model,
                                                             const ScoreOptions& options, const RequestLimits& limits,
                                                             const CallNames& names) {
  if (const core::ServedLanguageModel* language_model = model->language_model(); language_model != nullptr) {
    return MakeScorer(std::shared_ptr<const core::ServedLanguageModel>(std::move(model), language_model), options,
                      limits, names);
  }
  const core::ServedClassifier* classifier = model->classifier();
  if (classifier->info.input == models::ClassifierInput::kText) {
    return MakeScorer(std::shared_ptr<const core::ServedClassifier>(std::move(model), classifier), options, names);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("texts cannot be scored: model ", model->name, " is a classifier of images"));
}

}  // namespace longshort::server
