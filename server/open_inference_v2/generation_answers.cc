#include "server/open_inference_v2/generation_answers.h"

#include <utility>
#include <variant>

namespace longshort {

using inference::ModelInferResponse;

GenerationAnswers::GenerationAnswers(AnswerForm form, bool empty_final_answer, int32_t completions, StreamStart start)
    : form_(std::move(form)),
      empty_final_answer_(empty_final_answer),
      completions_(completions),
      start_(std::move(start)),
      events_(completions) {}

std::optional<ModelInferResponse> GenerationAnswers::Pop() {
  while (std::optional<StreamEvent> event = events_.Pop()) {
    if (std::optional<ModelInferResponse> answer = ToAnswer(*std::move(event)); answer.has_value()) return answer;
  }
  if (!std::exchange(tell_final_, false)) return std::nullopt;
  ModelInferResponse answer = EmptyAnswer(form_, start_.model);
  (*answer.mutable_parameters())[kFinalAnswer].set_bool_param(true);
  return answer;
}

std::optional<ModelInferResponse> GenerationAnswers::ToAnswer(StreamEvent event) {
  if (auto* delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
    TextPiece piece{.text = std::move(delta->text)};
    for (const GeneratedToken& token : delta->tokens) piece.ids.push_back(token.token);
    return PieceAnswer(delta->index, piece, false);
  }
  if (auto* end = std::get_if<CompletionEnd>(&event); end != nullptr) {
    if (++ended_ == completions_) {
      last_end_ = std::move(*end);
      return std::nullopt;
    }
    return PieceAnswer(end->index, {.finish_reason = NameOf(end->finish_reason)}, false);
  }
  const auto* summary = std::get_if<StreamSummary>(&event);
  if (summary == nullptr || !last_end_.has_value()) return std::nullopt;
  tell_final_ = empty_final_answer_;
  ModelInferResponse answer =
      PieceAnswer(last_end_->index, {.finish_reason = NameOf(last_end_->finish_reason)}, !empty_final_answer_);
  AddUsage(summary->usage, answer);
  AddSeed(start_.seed, answer);
  return answer;
}

ModelInferResponse GenerationAnswers::PieceAnswer(int32_t index, const TextPiece& piece, bool final) const {
  ModelInferResponse answer = AnswerOf(form_, start_.model, piece);
  auto& parameters = *answer.mutable_parameters();
  parameters[kFinalAnswer].set_bool_param(final);
  if (completions_ > 1) parameters["completion"].set_int64_param(index);
  return answer;
}

}  // namespace longshort
