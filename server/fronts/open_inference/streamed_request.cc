#include "server/fronts/open_inference/streamed_request.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/fronts/open_inference/infer.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

using inference::ModelInferResponse;

// A stream may have many generations. Together they should hold about as much as one stream of longshort.v1.
constexpr size_t kMostWaiting = 32 << 10;

}  // namespace

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
    for (const core::GeneratedToken& token : delta->tokens) piece.ids.push_back(token.token);
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

StreamedRequest::StreamedRequest(std::shared_ptr<Call> stream, int64_t number, NoteAnswers note_answers)
    : stream_(std::move(stream)),
      note_answers_(std::move(note_answers)),
      record_(stream_->record(), kStreamedRequestNames,
              absl::StrCat(stream_->record().engine_context().id, "-", number)) {}

absl::Status StreamedRequest::Hold() {
  constexpr int64_t kBytes = 4 << 10;  // measured: with the error of a request that was refused
  memory_ = record_.MemoryShare();
  return core::Hold(kBytes, memory_);
}

absl::Status StreamedRequest::Plan(inference::ModelInferRequest request) {
  // An error's answer repeats them. Longer ones are invalid.
  id_ = request.id().substr(0, kMaxRequestIdBytes);
  model_ = request.model_name().substr(0, kMaxModelNameBytes);
  LS_RETURN_IF_ERROR(record_.Admit());
  LS_ASSIGN_OR_RETURN(plan_, PlanInfer(record_, std::move(request)));
  return absl::OkStatus();
}

bool StreamedRequest::is_generation() const { return std::holds_alternative<GenerateCall>(plan_->call); }

absl::Status StreamedRequest::Submit() {
  if (is_generation()) {
    const absl::Status status = GenerateStream(record_, std::get<GenerateCall>(plan_->call), shared_from_this());
    return plan_.reset(), status;
  }
  InferPlan plan = *std::exchange(plan_, std::nullopt);
  return Infer(record_, std::move(plan),
               [self = shared_from_this()](absl::AnyInvocable<absl::StatusOr<inference::ModelInferResponse>()> make) {
                 self->stream_->RunForAnswer(self->record_,
                                             [self, make = std::move(make)]() mutable { self->Answer(make()); });
               });
}

void StreamedRequest::Answer(absl::StatusOr<inference::ModelInferResponse> answer) {
  const absl::Status status = answer.status();
  if (status.ok()) {
    const MutexLock lock(stream_->mutex());
    answer_ = *std::move(answer);
    record_.answers().SetHeld(static_cast<int64_t>(answer_->ByteSizeLong()));
  }
  End(status);
}

void StreamedRequest::End(const absl::Status& status) {
  {
    const MutexLock lock(stream_->mutex());
    closed_ = status;
    note_answers_(shared_from_this());
  }
  stream_->Advance();
}

void StreamedRequest::Open(int32_t completions, StreamStart start) {
  const MutexLock lock(stream_->mutex());
  submitted_ = false;
  generation_.emplace(std::move(plan_->form), plan_->empty_final_answer, completions, std::move(start));
}

void StreamedRequest::Submitted(bool taken) {
  {
    const MutexLock lock(stream_->mutex());
    submitted_ = true;
    if (!taken) generation_.reset();
    note_answers_(shared_from_this());
  }
  stream_->Advance();
}

void StreamedRequest::Push(StreamEvent event) {
  const MutexLock lock(stream_->mutex());
  if (!generation_.has_value()) return;
  generation_->Push(std::move(event));
  SetPause();
  if (!submitted_) return;
  note_answers_(shared_from_this());
  if (!stream_->writing()) stream_->AdvanceLater();  // a pending write's end advances the stream
}

void StreamedRequest::Close(const absl::Status& status) { End(status); }

std::optional<inference::ModelStreamInferResponse> StreamedRequest::Take() {
  stream_->mutex().AssertHeld();
  if (finished_ || !submitted_) return std::nullopt;
  inference::ModelStreamInferResponse message;
  if (generation_.has_value()) {
    std::optional<inference::ModelInferResponse> next = generation_->Pop();
    SetPause();
    if (next.has_value()) {
      record_.trace().BeginMessage();
      *message.mutable_infer_response() = *std::move(next);
      return message;
    }
  }
  if (!closed_.has_value()) return std::nullopt;
  finished_ = true;
  if (const absl::Status status = record_.Finish(*closed_); !status.ok()) return ErrorAnswer(status);
  if (!answer_.has_value()) return std::nullopt;
  *message.mutable_infer_response() = *std::exchange(answer_, std::nullopt);
  (*message.mutable_infer_response()->mutable_parameters())[kFinalAnswer].set_bool_param(true);
  return message;
}

void StreamedRequest::RemoveAnswers() {
  stream_->mutex().AssertHeld();
  generation_.reset();
  answer_.reset();
  record_.PauseAbove(kMostWaiting, 0);
  if (finished_ || !submitted_ || !closed_.has_value()) return;
  finished_ = true;
  record_.Finish(*closed_).IgnoreError();
}

void StreamedRequest::SetPause() {
  record_.answers().SetHeld(static_cast<int64_t>(generation_->waiting_memory()));
  record_.PauseAbove(kMostWaiting, generation_->waiting_bytes());
}

inference::ModelStreamInferResponse StreamedRequest::ErrorAnswer(const absl::Status& status) const {
  inference::ModelStreamInferResponse message;
  message.set_error_message(absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message()));
  inference::ModelInferResponse& about = *message.mutable_infer_response();
  about.set_id(id_);
  about.set_model_name(model_);
  (*about.mutable_parameters())[kFinalAnswer].set_bool_param(true);
  if (const std::optional<core::Refusal> refusal = core::GetRefusal(status); refusal.has_value()) {
    (*about.mutable_parameters())["retry_after_ms"].set_int64_param(absl::ToInt64Milliseconds(refusal->retry_after));
  }
  return message;
}

}  // namespace longshort::server
