#include "server/scoring/language_model_scorer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/requests/answers.h"
#include "server/requests/field_error.h"
#include "server/requests/input_reader.h"

namespace longshort {
namespace {

// On the wire, at the most: a score beside its tokens, and a described token or alternative.
constexpr int64_t kScoreBytes = 128;
constexpr int64_t kTokenBytes = 24;

class Listener final : public ScoringListener {
 public:
  Listener(std::shared_ptr<const ServedLanguageModel> model, int64_t tokens, TextScorer::Done done)
      : model_(std::move(model)), tokens_(tokens), done_(std::move(done)) {}

  void OnFinished(absl::StatusOr<Score> score) override {
    if (!score.ok()) return done_(score.status());
    ScoredText scored{.result = ToMessage(*score, tokens_, *model_),
                      .tokens = tokens_,
                      .cached_tokens = score->reused_tokens,
                      .timings = score->timings};
    done_(std::move(scored));
  }

 private:
  const std::shared_ptr<const ServedLanguageModel> model_;
  const int64_t tokens_;
  const TextScorer::Done done_;
};

class LanguageModelScorer final : public TextScorer {
 public:
  LanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model, const v1::ScoreTextsOptions& options,
                      const RequestLimits& limits)
      : model_(std::move(model)),
        describe_tokens_(options.token_log_probabilities()),
        top_alternatives_(describe_tokens_ ? options.top_alternatives() : 0),
        limits_(limits) {}

  absl::StatusOr<TextToScore> Read(const v1::Input& first, const std::string& first_name, const v1::Input* second,
                                   const std::string& second_name) const override {
    if (second != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(second_name, " is set; it must be unset, because the model is a language model"));
    }
    LS_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                        ReadInput(first, first_name, EncoderOf(*model_), limits_.prompt_tokens));
    TextToScore text;
    text.documents.push_back(std::move(tokens));
    text.truncated = {false};
    return text;
  }

  int64_t AnswerBytes(int64_t texts, int64_t tokens) const override {
    return texts * kScoreBytes + DescribedTokens(tokens) * kTokenBytes;
  }

  absl::Status CheckAnswerFits(int64_t /*texts*/, int64_t tokens) const override {
    return CheckFieldRange("number of tokens to return (log-probabilities, times 1 + top_alternatives)",
                           DescribedTokens(tokens), 0, limits_.described_tokens);
  }

  absl::Status Submit(TextToScore text, const RequestContext& context, Done done) const override {
    auto listener = std::make_shared<Listener>(model_, text.tokens(), std::move(done));
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
};

absl::Status CheckUnset(const char* field, int64_t value) {
  if (value == 0) return absl::OkStatus();
  return FieldError(field, value, "unset: the model is a language model");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextScorer>> MakeLanguageModelScorer(std::shared_ptr<const ServedLanguageModel> model,
                                                                    const v1::ScoreTextsOptions& options,
                                                                    const RequestLimits& limits) {
  LS_RETURN_IF_ERROR(CheckFieldRange("top_alternatives", options.top_alternatives(), 0, limits.top_alternatives));
  LS_RETURN_IF_ERROR(CheckUnset("truncate", options.truncate()));
  LS_RETURN_IF_ERROR(CheckUnset("top_k", options.top_k()));
  LS_RETURN_IF_ERROR(CheckUnset("all_logits", options.all_logits()));
  return std::make_unique<LanguageModelScorer>(std::move(model), options, limits);
}

}  // namespace longshort
