#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/budget.h"
#include "base/status_macros.h"
#include "core/requests/job.h"
#include "core/schedule/refusal.h"
#include "server/calls/call_names.h"
#include "server/handlers/handlers.h"
#include "server/handlers/scatter_gather.h"
#include "server/handlers/sessions.h"
#include "server/handlers/text_scorer.h"

namespace longshort::server {
namespace {

absl::StatusOr<std::vector<TextToScore>> ReadTexts(const CallRecord& record, const ScoreCall& call,
                                                   const TextScorer& scorer) {
  const CallNames& names = record.names();
  const int64_t max = record.environment().limits.inputs;
  const auto count = static_cast<int64_t>(call.texts.size());
  LS_RETURN_IF_ERROR(CheckFieldRange([&] { return absl::StrCat("number of ", names.Of("inputs")); }, count, 1, max));
  const bool pairs = !call.second_texts.empty();
  if (pairs && call.second_texts.size() != call.texts.size()) {
    return FieldError(absl::StrCat("number of ", names.Of("second_inputs")), call.second_texts.size(),
                      absl::StrCat(count, ", as many as ", names.Of("inputs")));
  }
  std::vector<TextToScore> texts;
  int64_t tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<TextInput> second = pairs ? std::optional(call.second_texts[i]) : std::nullopt;
    LS_ASSIGN_OR_RETURN(TextToScore text, scorer.Read(call.texts[i], second, i));
    tokens += text.tokens();
    texts.push_back(std::move(text));
  }
  LS_RETURN_IF_ERROR(scorer.CheckAnswerFits(count, tokens, record.max_answer_bytes()));
  return texts;
}

// Texts of one call that the engine has at a time. The others wait here, so that a call may have more than the queue.
constexpr int64_t kWindow = 64;
constexpr int64_t kTextBytes = 256;  // of a text that waits, beside its tokens

struct HeldTexts {
  std::vector<TextToScore> texts;
  Budget::Share memory;  // of those that wait
};

// Computes the totals when all texts have ended.
void Complete(CallRecord& record, ScoreResult& result) {
  for (const ScoredText& text : result.texts) {
    result.usage.prompt_tokens += text.tokens;
    result.usage.cached_tokens += text.cached_tokens;
    record.AddWork(text);
  }
  result.model = record.answering_model();
}

// Checks the session that the only text continues, if the call names one.
absl::Status CheckSessionOf(const ScoreCall& call, const core::ServedModel& model, const CallNames& names) {
  if (!call.session.has_value()) return absl::OkStatus();
  if (model.language_model() == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.Of("session"), " is set; it must be unset, because the model is a classifier"));
  }
  if (call.texts.size() > 1) {
    return FieldError(absl::StrCat("number of ", names.Of("inputs")), call.texts.size(),
                      "1 with a session, which has a single continuation");
  }
  return CheckSession(*call.session, names);
}

}  // namespace

absl::Status RunTexts(CallRecord& record, const ScoreCall& call, const std::shared_ptr<const TextScorer>& scorer,
                      int64_t max_in_queue, ScoreResult result, std::function<void(absl::StatusOr<ScoreResult>)> done) {
  const auto held = std::make_shared<HeldTexts>();
  LS_ASSIGN_OR_RETURN(held->texts, ReadTexts(record, call, *scorer));
  held->texts.front().session = call.session;
  LS_RETURN_IF_ERROR(TakeSession(record, &held->texts.front().session));

  const auto count = static_cast<int64_t>(held->texts.size()), window = std::min(kWindow, max_in_queue);
  int64_t tokens = 0, first_tokens = 0;
  for (int64_t i = 0; i < count; ++i) {
    tokens += held->texts[i].tokens();
    if (i < window) first_tokens = tokens;
  }
  LS_RETURN_IF_ERROR(record.answers().Hold(scorer->AnswerBytes(count, tokens)));
  if (count > window) {
    held->memory = record.MemoryShare();
    LS_RETURN_IF_ERROR(core::Hold(
        (tokens - first_tokens) * core::TokenStream::kTokenBytes + (count - window) * kTextBytes, held->memory));
  }
  result.texts.resize(held->texts.size());
  // The scorer lives until all texts have ended.
  const auto parts = std::make_shared<ScatterGather<ScoreResult>>(
      record.engine_context().cancelled, std::move(result),
      [&record, scorer](const absl::Status& status, ScoreResult& all) {
        if (status.ok()) Complete(record, all);
      },
      std::move(done));
  const auto submit = [&record, scorer, parts, held, window, first_tokens](core::PositionInCall position) {
    const int64_t index = position.index;
    const bool is_alone = index >= window;  // it is submitted again if it is refused
    TextToScore text = is_alone ? held->texts[index] : std::move(held->texts[index]);
    const int64_t tokens_of_text = text.tokens();
    if (is_alone) {
      position = core::PositionInCall();
    } else {
      position.share = static_cast<double>(tokens_of_text) / static_cast<double>(first_tokens);
    }
    core::RequestContext context = record.engine_context();
    context.position_in_call = position;
    const absl::Status status =
        scorer->Submit(std::move(text), context, [parts, index](absl::StatusOr<ScoredText> scored) {
          parts->PartEnded(scored.status(), [&](ScoreResult& all) {
            if (scored.ok()) all.texts[index] = *std::move(scored);
          });
        });
    if (!status.ok()) return status;
    if (is_alone) held->texts[index] = TextToScore();
    record.ChargeTokens(tokens_of_text);
    return status;
  };
  parts->SubmitInTurn(count, window, submit,
                      [&record](absl::AnyInvocable<void()> task) { record.RunInPool(std::move(task)); });
  return absl::OkStatus();
}

absl::Status ScoreText(CallRecord& record, const ScoreCall& call,
                       std::function<void(absl::StatusOr<ScoreResult>)> done) {
  const RequestLimits& limits = record.environment().limits;
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedModel> model, record.FindModel(call.model));
  record.CountIn(model->statistics(), OperationOfTexts(*model, call.options));
  LS_RETURN_IF_ERROR(CheckSessionOf(call, *model, names));
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const TextScorer> scorer, TextScorer::Make(model, call.options, limits, names));
  const int64_t max_in_queue = model->max_items();
  ScoreResult result;
  result.served = std::move(model);
  return RunTexts(record, call, scorer, max_in_queue, std::move(result), std::move(done));
}

}  // namespace longshort::server
