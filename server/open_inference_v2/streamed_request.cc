#include "server/open_inference_v2/streamed_request.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/handlers/handlers.h"
#include "server/monitoring/code_name.h"
#include "server/open_inference_v2/infer.h"
#include "server/open_inference_v2/names.h"

namespace longshort {
namespace {

// A stream may have many generations: all together hold about what one of longshort.v1 may.
constexpr size_t kPauseBytes = 32 << 10;
constexpr size_t kResumeBytes = 8 << 10;

}  // namespace

StreamedRequest::StreamedRequest(std::shared_ptr<Owner> owner, const CallRecord& stream, int64_t number)
    : owner_(std::move(owner)),
      record_(stream, kStreamedRequestNames, absl::StrCat(stream.engine_context().id, "-", number)) {}

absl::Status StreamedRequest::Plan(inference::ModelInferRequest request) {
  id_ = request.id();
  model_ = request.model_name();
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
               [self = shared_from_this()](absl::StatusOr<inference::ModelInferResponse> answer) {
                 self->Answer(std::move(answer));
               });
}

void StreamedRequest::Answer(absl::StatusOr<inference::ModelInferResponse> answer) {
  const absl::Status status = answer.status();
  if (status.ok()) {
    const std::lock_guard lock(owner_->mutex());
    answer_ = *std::move(answer);
  }
  End(status);
}

void StreamedRequest::End(const absl::Status& status) {
  {
    const std::lock_guard lock(owner_->mutex());
    closed_ = status;
    owner_->NoteAnswers(shared_from_this());
  }
  owner_->Advance();
}

void StreamedRequest::Open(int32_t completions, StreamStart start) {
  const std::lock_guard lock(owner_->mutex());
  submitted_ = false;
  generation_.emplace(std::move(plan_->form), plan_->empty_final_answer, completions, std::move(start));
}

void StreamedRequest::Submitted(bool taken) {
  {
    const std::lock_guard lock(owner_->mutex());
    submitted_ = true;
    if (!taken) generation_.reset();
    owner_->NoteAnswers(shared_from_this());
  }
  owner_->Advance();
}

void StreamedRequest::Push(StreamEvent event) {
  const std::lock_guard lock(owner_->mutex());
  if (!generation_.has_value()) return;
  generation_->Push(std::move(event));
  SetPause();
  if (!submitted_) return;
  owner_->NoteAnswers(shared_from_this());
  owner_->AdvanceLater();
}

void StreamedRequest::Close(const absl::Status& status) { End(status); }

std::optional<inference::ModelStreamInferResponse> StreamedRequest::Take() {
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

void StreamedRequest::Drop() {
  generation_.reset();
  answer_.reset();
  record_.Pause(false);
  if (finished_ || !submitted_ || !closed_.has_value()) return;
  finished_ = true;
  record_.Finish(*closed_).IgnoreError();
}

void StreamedRequest::SetPause() {
  const size_t waiting = generation_->waiting_bytes();
  if (waiting > kPauseBytes) {
    record_.Pause(true);
  } else if (waiting <= kResumeBytes) {
    record_.Pause(false);
  }
}

inference::ModelStreamInferResponse StreamedRequest::ErrorAnswer(const absl::Status& status) const {
  inference::ModelStreamInferResponse message;
  message.set_error_message(absl::StrCat(CodeName(status.code()), ": ", status.message()));
  inference::ModelInferResponse& about = *message.mutable_infer_response();
  about.set_id(id_);
  about.set_model_name(model_);
  (*about.mutable_parameters())[kFinalAnswer].set_bool_param(true);
  if (const std::optional<Refusal> refusal = GetRefusal(status); refusal.has_value()) {
    (*about.mutable_parameters())["retry_after_ms"].set_int64_param(absl::ToInt64Milliseconds(refusal->retry_after));
  }
  return message;
}

}  // namespace longshort
