#include "server/rpc/score_stream.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/calls/call_status.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

// How long a document is held at a time: sooner would only be in the way, later would leave room unused that came
// before it was predicted.
constexpr absl::Duration kShortestRetry = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetry = absl::Seconds(1);

}  // namespace

bool ScoreStream::HasRoom() const {
  const RequestLimits& limits = environment().limits;
  return held_.empty() && window_documents_ < limits.stream_documents &&
         (window_documents_ == 0 || window_bytes_ < limits.stream_answer_bytes);
}

std::optional<grpc::ByteBuffer> ScoreStream::NextAnswer() {
  if (call_.reader_gone()) answers_.clear();
  if (answers_.empty()) return std::nullopt;
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  written_answer_bytes_ = answer.answer_bytes;
  return std::move(answer.message);
}

void ScoreStream::Written() {
  --window_documents_;
  window_bytes_ -= written_answer_bytes_;
}

void ScoreStream::Cancel(const absl::Status& reason) {
  record().Cancel();
  call_.End(reason);
}

absl::Status ScoreStream::Take(google::protobuf::Message& message) {
  return messages_.Read(message, [this](const StreamedText& text) { return TakeText(text); });
}

absl::Status ScoreStream::TakeText(const StreamedText& message) {
  if (scorer_ == nullptr) {
    LS_RETURN_IF_ERROR(Open(message.options.value_or(ScoreStreamOptions())));
  } else if (message.options.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(record().names().Of(CallField::kOptions),
                                                   " is set in a later message; it must be in the first one only"));
  }
  const absl::Time read = MonotonicNow();
  absl::StatusOr<TextToScore> text = ReadText(message);
  const Question question{.id = message.id,
                          .answer_bytes = scorer_->AnswerBytes(1, text.ok() ? text->tokens() : 0),
                          .arrival = {.read = read, .ready = MonotonicNow()}};
  {
    const std::lock_guard lock(mutex());
    ++in_work_;
    ++window_documents_;
    window_bytes_ += question.answer_bytes;
  }
  if (!text.ok()) {
    Reply(question, text.status());
  } else {
    Submit(Document{question, *std::move(text)});
  }
  return absl::OkStatus();
}

absl::Status ScoreStream::Open(const ScoreStreamOptions& options) {
  LS_ASSIGN_OR_RETURN(model_, record().FindModel(options.model));
  record().CountIn(model_->statistics(), OperationOfTexts(*model_));
  LS_ASSIGN_OR_RETURN(scorer_, TextScorer::Make(model_, options.scoring, environment().limits, record().names()));
  return absl::OkStatus();
}

absl::StatusOr<TextToScore> ScoreStream::ReadText(const StreamedText& message) const {
  LS_ASSIGN_OR_RETURN(TextToScore text, scorer_->Read(message.text, message.second_text, std::nullopt));
  LS_RETURN_IF_ERROR(scorer_->CheckAnswerFits(1, text.tokens()));
  return text;
}

void ScoreStream::Submit(std::optional<Document> document) {
  while (document.has_value()) {
    std::unique_lock lock(mutex());
    ++in_engine_;
    const int64_t ends_before = engine_ends_;
    lock.unlock();
    // Holds the stream until the engine has told the end of the document.
    auto done = [this, keep = call_.shared_from_this(), question = document->question](
                    absl::StatusOr<ScoredText> scored) { DocumentEnded(question, std::move(scored)); };
    // Beyond its identity's tokens a second a document is held like one that the engine has no room for.
    absl::Status status = record().CheckTokenLimit();
    if (status.ok()) status = scorer_->Submit(document->text, record().engine_context(), std::move(done));
    if (status.ok()) record().ChargeTokens(document->text.tokens());
    lock.lock();
    if (!status.ok()) {
      --in_engine_;
      if (call_.is_well() && absl::IsResourceExhausted(status)) {
        if (engine_ends_ != ends_before) continue;  // there may be room again
        if (in_engine_ > 0 || GetRefusal(status).has_value()) return Hold(*std::move(document), status);
      }
      lock.unlock();
      Reply(document->question, std::move(status));
      lock.lock();
    }
    document = TakeHeld();
  }
}

void ScoreStream::Hold(Document document, const absl::Status& refusal) {
  held_.push_back(std::move(document));
  const absl::Duration wait = GetRefusal(refusal).value_or(Refusal()).retry_after;
  const absl::Time then = MonotonicNow() + std::clamp(wait, kShortestRetry, kLongestRetry);
  call_.LookAt(then);
}

void ScoreStream::SubmitHeld() {
  std::unique_lock lock(mutex());
  std::optional<Document> next = TakeHeld();
  lock.unlock();
  Submit(std::move(next));
  call_.Advance();
}

std::optional<ScoreStream::Document> ScoreStream::TakeHeld() {
  if (held_.empty()) return std::nullopt;
  std::optional<Document> first = std::move(held_.front());
  held_.pop_front();
  return first;
}

void ScoreStream::DocumentEnded(const Question& question, absl::StatusOr<ScoredText> scored) {
  {
    const std::lock_guard lock(mutex());
    --in_engine_;
    ++engine_ends_;
  }
  SubmitHeld();
  Reply(question, std::move(scored));
}

void ScoreStream::Reply(const Question& question, absl::StatusOr<ScoredText> scored) {
  if (scored.ok()) {
    const std::lock_guard lock(mutex());
    record().AddWork(*scored, question.arrival);
  }
  absl::StatusOr<grpc::ByteBuffer> message =
      EndsCall(scored.status()) ? scored.status() : messages_.Write(question.id, *model_, scored);
  if (!message.ok()) call_.End(message.status());
  {
    const std::lock_guard lock(mutex());
    --in_work_;
    if (message.ok()) answers_.push_back({*std::move(message), question.answer_bytes});
  }
  call_.Advance();
}

void ScoreStream::DropHeld() {
  in_work_ -= static_cast<int64_t>(held_.size());
  held_.clear();
}

}  // namespace longshort
