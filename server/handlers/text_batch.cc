#include "server/handlers/text_batch.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/calls/field_error.h"
#include "server/handlers/scatter_gather.h"
#include "server/handlers/session_check.h"

namespace longshort::server {
namespace {

absl::StatusOr<std::vector<TextToScore>> ReadTexts(const ScoreCall& call, const TextScorer& scorer, int64_t max,
                                                   const CallNames& names) {
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
  LS_RETURN_IF_ERROR(scorer.CheckAnswerFits(count, tokens));
  return texts;
}

// Computes the totals when all texts have ended.
void Complete(CallRecord& record, ScoreResult& result) {
  for (const ScoredText& text : result.texts) {
    result.usage.prompt_tokens += text.tokens;
    result.usage.cached_tokens += text.cached_tokens;
    record.AddWork(text);
  }
  result.model = record.answering_model();
}

}  // namespace

absl::Status RunTexts(CallRecord& record, const ScoreCall& call, std::shared_ptr<const TextScorer> scorer, int64_t max,
                      ScoreResult result, std::function<void(absl::StatusOr<ScoreResult>)> done) {
  const CallNames& names = record.names();
  LS_ASSIGN_OR_RETURN(std::vector<TextToScore> texts, ReadTexts(call, *scorer, max, names));
  texts.front().session = call.session;
  LS_RETURN_IF_ERROR(TakeSession(record, &texts.front().session));

  int64_t tokens = 0;
  for (const TextToScore& text : texts) tokens += text.tokens();
  LS_RETURN_IF_ERROR(record.answers().Hold(scorer->AnswerBytes(static_cast<int64_t>(texts.size()), tokens)));
  result.texts.resize(texts.size());
  // The scorer lives until all texts have ended.
  const auto parts = std::make_shared<ScatterGather<ScoreResult>>(
      record.engine_context().cancelled, std::move(result),
      [&record, scorer](const absl::Status& status, ScoreResult& all) {
        if (status.ok()) Complete(record, all);
      },
      std::move(done));
  parts->SubmitParts(static_cast<int64_t>(texts.size()), [&](core::PositionInCall position) {
    TextToScore& text = texts[position.index];
    const int64_t tokens_of_text = text.tokens();
    position.share = static_cast<double>(tokens_of_text) / static_cast<double>(tokens);
    core::RequestContext context = record.engine_context();
    context.position_in_call = position;
    const absl::Status status =
        scorer->Submit(std::move(text), context, [parts, i = position.index](absl::StatusOr<ScoredText> scored) {
          parts->PartEnded(scored.status(), [&](ScoreResult& all) {
            if (scored.ok()) all.texts[i] = *std::move(scored);
          });
        });
    if (status.ok()) record.ChargeTokens(tokens_of_text);
    return status;
  });
  return absl::OkStatus();
}

}  // namespace longshort::server
