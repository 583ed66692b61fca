#include "server/handlers/score_texts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/fan_out.h"
#include "server/handlers/session_check.h"
#include "server/handlers/text_scorer.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

absl::StatusOr<std::vector<TextToScore>> ReadTexts(const ScoreCall& call, const TextScorer& scorer, int64_t most,
                                                   const CallNames& names) {
  const auto count = static_cast<int64_t>(call.texts.size());
  LS_RETURN_IF_ERROR(CheckFieldRange(absl::StrCat("number of ", names.Of(CallField::kTexts)), count, 1, most));
  const bool pairs = !call.second_texts.empty();
  if (pairs && call.second_texts.size() != call.texts.size()) {
    return FieldError(absl::StrCat("number of ", names.Of(CallField::kSecondTexts)), call.second_texts.size(),
                      absl::StrCat(count, ", as many as ", names.Of(CallField::kTexts)));
  }
  std::vector<TextToScore> texts;
  int64_t tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<TextInput> second = pairs ? std::optional(call.second_texts[i]) : std::nullopt;
    LS_ASSIGN_OR_RETURN(TextToScore text, scorer.Read(call.texts[i], second, i));
    tokens += text.tokens();
    texts.push_back(std::move(text));
  }
  LS_RETURN_IF_ERROR(scorer.CheckAnswerFits(count, tokens));
  return texts;
}

// That the only text goes on with, if the call names one.
absl::Status CheckSessionOf(const ScoreCall& call, const ServedModel& model, const CallNames& names) {
  if (!call.session.has_value()) return absl::OkStatus();
  if (model.language_model() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of(CallField::kSession), " is set; it must be unset, because the model is a classifier"));
  }
  if (call.texts.size() > 1) {
    return FieldError(absl::StrCat("number of ", names.Of(CallField::kTexts)), call.texts.size(),
                      "1 with a session, which goes on from one end");
  }
  return CheckSession(*call.session, names);
}

// Held by what tells the end of each text.
class TextsInWork final : public std::enable_shared_from_this<TextsInWork> {
 public:
  TextsInWork(CallRecord& record, std::shared_ptr<const ServedModel> model, std::unique_ptr<TextScorer> scorer,
              std::function<void(absl::StatusOr<ScoreResult>)> done)
      : record_(record), model_(std::move(model)), scorer_(std::move(scorer)), done_(std::move(done)) {}

  void Submit(std::vector<TextToScore> texts) {
    const auto count = static_cast<int64_t>(texts.size());
    int64_t tokens = 0;
    for (const TextToScore& text : texts) tokens += text.tokens();
    result_.texts.resize(texts.size());
    fan_out_.emplace(count + 1, record_.engine_context().cancelled);
    const Submission submission = SubmitAll(count, *fan_out_, [&](const CallPart& part) {
      auto text_done = [self = shared_from_this(), i = part.index](absl::StatusOr<ScoredText> scored) {
        self->TextEnded(i, std::move(scored));
      };
      RequestContext context = record_.engine_context();
      context.part = part;
      TextToScore& text = texts[part.index];
      const int64_t tokens_of_text = text.tokens();
      context.part.share = static_cast<double>(tokens_of_text) / static_cast<double>(tokens);
      const absl::Status status = scorer_->Submit(std::move(text), context, std::move(text_done));
      if (status.ok()) record_.ChargeTokens(tokens_of_text);
      return status;
    });
    if (submission.ended) End();
  }

 private:
  // Each text writes to a place of its own, so no lock is needed among them.
  void TextEnded(int64_t index, absl::StatusOr<ScoredText> scored) {
    const absl::Status status = scored.status();
    if (status.ok()) result_.texts[index] = *std::move(scored);
    if (fan_out_->Finished(status)) End();
  }

  void End() {
    scorer_ = nullptr;
    const auto done = std::exchange(done_, nullptr);  // it holds the call, whose end may not wait for this one's
    if (const absl::Status status = fan_out_->status(); !status.ok()) return done(status);
    for (const ScoredText& text : result_.texts) {
      result_.usage.prompt_tokens += text.tokens;
      result_.usage.cached_tokens += text.cached_tokens;
      record_.AddWork(text);
    }
    result_.model = record_.answering_model();
    result_.served = std::move(model_);
    done(std::move(result_));
  }

  CallRecord& record_;
  std::shared_ptr<const ServedModel> model_;
  std::unique_ptr<TextScorer> scorer_;
  std::function<void(absl::StatusOr<ScoreResult>)> done_;
  std::optional<FanOut> fan_out_;
  ScoreResult result_;
};

}  // namespace

absl::Status ScoreTexts(CallRecord& record, const ScoreCall& call,
                        std::function<void(absl::StatusOr<ScoreResult>)> done) {
  const RequestLimits& limits = record.environment().limits;
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedModel> model, record.FindModel(call.model));
  record.CountIn(model->statistics(), OperationOfTexts(*model));
  LS_RETURN_IF_ERROR(CheckSessionOf(call, *model, names));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<TextScorer> scorer, TextScorer::Make(model, call.options, limits, names));
  const int64_t most = std::min(limits.inputs, model->max_items());
  LS_ASSIGN_OR_RETURN(std::vector<TextToScore> texts, ReadTexts(call, *scorer, most, names));
  texts.front().session = call.session;
  LS_RETURN_IF_ERROR(TakeSession(record, &texts.front().session));
  std::make_shared<TextsInWork>(record, std::move(model), std::move(scorer), std::move(done))->Submit(std::move(texts));
  return absl::OkStatus();
}

}  // namespace longshort
