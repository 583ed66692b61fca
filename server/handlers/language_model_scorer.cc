#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/text_reader.h"
#include "server/handlers/text_scorer.h"

namespace longshort {
namespace {

// On the wire, at the most: a score beside its tokens, and a described token or alternative.
constexpr int64_t kScoreBytes = 128;
constexpr int64_t kTokenBytes = 24;

TextScore AnswerOf(Score score, int64_t token_count, const ServedLanguageModel& model) {
  TextScore answer{.log_likelihood = score.total_log_probability,
                   .token_count = token_count,
                   .scored_token_count = score.scored_tokens,
                   .tokens = std::move(score.tokens),
                   .timings = score.timings};
  if (model.tokenizer != nullptr && score.scored_tokens > 0) {
    const double bits = -score.total_log_probability / std::log(2.0) / static_cast<double>(score.scored_tokens);
    (model.tokenizer->unit() == Tokenizer::Unit::kByte ? answer.bits_per_byte : answer.bits_per_character) = bits;
  }
  if (score.session_tokens > 0) answer.session_tokens = score.session_tokens;
  return answer;
}

class LikelihoodListener final : public ScoringListener {
 public:
  LikelihoodListener(std::shared_ptr<const ServedLanguageModel> model, int64_t tokens, TextScorer::Done done)
      : model_(std::move(model)), tokens_(tokens), done_(std::move(done)) {}

  void OnFinished(absl::StatusOr<Score> score) override {
    if (!score.ok()) return done_(score.status());
    const int64_t cached_tokens = score->reused_tokens;
    done_(ScoredText{
        .result = AnswerOf(*std::move(score), tokens_, *model_), .tokens = tokens_, .cached_tokens = cached_tokens});
  }

 private:
  const std::shared_ptr<const ServedLanguageModel> model_;
  const int64_t tokens_;
  const TextScorer::Done done_;
};

class LanguageModelScorer final : public TextScorer {
 public:
  LanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model, const ScoreOptions& options,
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
          absl::StrCat(names_.Of({.field = CallField::kSecondText, .index = index}),
                       " is set; it must be unset, because the model is a language model"));
    }
    const NamedText named = {.input = first, .path = {.field = CallField::kText, .index = index}};
    LS_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        ReadText(named, names_, EncoderOf(*model_), limits_.prompt_tokens));
    TextToScore text;
    text.documents.push_back(std::move(tokens));
    text.truncated = {false};
    return text;
  }

  int64_t AnswerBytes(int64_t texts, int64_t tokens) const override {
    return texts * kScoreBytes + DescribedTokens(tokens) * kTokenBytes;
  }

  absl::Status CheckAnswerFits(int64_t /*texts*/, int64_t tokens) const override {
    const int64_t described = DescribedTokens(tokens);
    if (described <= limits_.described_tokens) return absl::OkStatus();
    return CheckFieldRange(absl::StrCat("number of tokens to return (log-probabilities, times 1 + ",
                                        names_.Of(CallField::kTopAlternatives), ")"),
                           described, 0, limits_.described_tokens);
  }

  absl::Status Submit(TextToScore text, const RequestContext& context, Done done) const override {
    auto listener = std::make_shared<LikelihoodListener>(model_, text.tokens(), std::move(done));
    ScoringRequest request;
    request.context = context;
    request.tokens = std::move(text.documents.front());
    request.session = std::move(text.session);
    request.log_probabilities = describe_tokens_;
    request.top_alternatives = top_alternatives_;
    return model_->engine->Score(std::move(request), std::move(listener));
  }

 private:
  int64_t DescribedTokens(int64_t tokens) const { return describe_tokens_ ? tokens * (1 + top_alternatives_) : 0; }

  const std::shared_ptr<const ServedLanguageModel> model_;
  const bool describe_tokens_;
  const int64_t top_alternatives_;
  const RequestLimits limits_;
  const CallNames& names_;
};

absl::Status CheckUnsetForLanguageModel(CallField field, int64_t value, const CallNames& names) {
  if (value == 0) return absl::OkStatus();
  return FieldError(names.Of(field), value, "unset: the model is a language model");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeLanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model,
                                                                    const ScoreOptions& options,
                                                                    const RequestLimits& limits,
                                                                    const CallNames& names) {
  LS_RETURN_IF_ERROR(
      CheckFieldRange(names.Of(CallField::kTopAlternatives), options.top_alternatives, 0, limits.top_alternatives));
  LS_RETURN_IF_ERROR(CheckUnsetForLanguageModel(CallField::kTruncate, options.truncate ? 1 : 0, names));
  LS_RETURN_IF_ERROR(CheckUnsetForLanguageModel(CallField::kTopK, options.classes.top_k, names));
  LS_RETURN_IF_ERROR(CheckUnsetForLanguageModel(CallField::kAllLogits, options.classes.all_logits ? 1 : 0, names));
  return std::make_unique<LanguageModelScorer>(std::move(model), options, limits, names);
}

}  // namespace longshort
