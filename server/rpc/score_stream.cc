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

ScoreStream::ScoreStream(const CallEnvironment& environment, const CallNames& names,
                         const ScoreStreamMessages& messages, grpc::CallbackServerContext* context)
    : environment_(environment),
      messages_(messages),
      call_(environment, names, *context),
      record_(call_.record()),
      idle_(environment.gate),
      watch_(environment.slow_reader_timeout) {}

ScoreStream::~ScoreStream() { environment_.gate.Forget(gate_watch_); }

ScoreStream* ScoreStream::Start(const CallEnvironment& environment, const CallNames& names,
                                const ScoreStreamMessages& messages, grpc::CallbackServerContext* context) {
  auto stream = std::shared_ptr<ScoreStream>(new ScoreStream(environment, names, messages, context));
  stream->grpc_reference_ = stream;
  stream->gate_watch_ = environment.gate.WhenClosed([weak = stream->weak_from_this()] {
    if (const std::shared_ptr<ScoreStream> open = weak.lock()) open->OnStopping();
  });
  if (absl::Status status = stream->record_.Admit(); !status.ok()) {
    stream->End(status);
  } else {
    stream->Advance();
  }
  return stream.get();
}

void ScoreStream::OnReadDone(bool ok) {
  std::unique_lock lock(mutex_);
  if (!ok && !ended_.has_value()) ended_ = absl::OkStatus();  // the client's half-close
  if (ok && !ended_.has_value()) {
    ++busy_;
    lock.unlock();
    const absl::Status status =
        messages_.Read(incoming_, [this](const StreamedText& message) { return Take(message); });
    if (!status.ok()) {
      record_.Cancel();
      End(status);
    }
    incoming_.Clear();
    lock.lock();
    --busy_;
  }
  reading_ = false;  // not before: the next read overwrites the message
  lock.unlock();
  Advance();
}

void ScoreStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    watch_.End();
    --window_documents_;
    window_bytes_ -= answers_.front().answer_bytes;
    answers_.pop_front();
    if (!ok) reader_gone_ = true;
  }
  if (!ok) {
    record_.Cancel();
    return End(absl::CancelledError("the client went away"));
  }
  Advance();
}

void ScoreStream::OnCancel() {
  record_.Cancel();
  End(absl::CancelledError("the client cancelled"));
}

bool ScoreStream::WindowHasRoom() const {
  return window_documents_ < environment_.limits.stream_documents &&
         (window_documents_ == 0 || window_bytes_ < environment_.limits.stream_answer_bytes);
}

void ScoreStream::Advance() {
  const std::shared_ptr<ScoreStream> keep = shared_from_this();  // finished, gRPC may let go
  std::unique_lock lock(mutex_);
  for (;;) {
    if (finished_) return;
    if (reader_gone_) answers_.clear();
    const bool write = !watch_.writing() && !answers_.empty();
    const bool read = !reading_ && !ended_.has_value() && held_.empty() && WindowHasRoom();
    if (!write && !read) break;
    if (write) {
      const absl::Time now = MonotonicNow();
      outgoing_ = answers_.front().message;
      watch_.Begin(now);
      if (look_ == nullptr) WatchReader(now);
    }
    reading_ |= read;
    ++busy_;
    lock.unlock();
    if (write) {
      call_.BeginAnswer();
      StartWrite(&outgoing_);
    }
    if (read) StartRead(&incoming_);
    lock.lock();
    --busy_;
  }
  idle_.Set(!ended_.has_value() && in_work_ == 0 && !watch_.writing() && busy_ == 0);
  if (!ended_.has_value() || in_work_ > 0 || watch_.writing() || busy_ > 0) return;
  finished_ = true;
  const absl::Status status = *ended_;
  lock.unlock();
  Finish(call_.Finish(status));
}

void ScoreStream::WatchReader(absl::Time now) {
  // The timer holds no reference: a stream does not live on for it.
  look_ = std::make_unique<grpc::Alarm>();
  look_->Set(absl::ToChronoTime(ToWallClock(watch_.NextLook(now))), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<ScoreStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->LookAfterReader();
  });
}

void ScoreStream::LookAfterReader() {
  std::unique_lock lock(mutex_);
  look_ = nullptr;
  if (finished_ || !watch_.writing()) return;
  const absl::Time now = MonotonicNow();
  if (!watch_.IsStuck(now)) return WatchReader(now);
  ++busy_;
  lock.unlock();
  call_.CancelSlowReader();
  lock.lock();
  --busy_;
  lock.unlock();
  Advance();
}

absl::Status ScoreStream::Take(const StreamedText& message) {
  if (scorer_ == nullptr) {
    LS_RETURN_IF_ERROR(Open(message.options.value_or(ScoreStreamOptions())));
  } else if (message.options.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(record_.names().Of(CallField::kOptions),
                                                   " is set in a later message; it must be in the first one only"));
  }
  const absl::Time read = MonotonicNow();
  absl::StatusOr<TextToScore> text = ReadText(message);
  const Question question{.id = message.id,
                          .answer_bytes = scorer_->AnswerBytes(1, text.ok() ? text->tokens() : 0),
                          .arrival = {.read = read, .ready = MonotonicNow()}};
  {
    const std::lock_guard lock(mutex_);
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
  LS_ASSIGN_OR_RETURN(model_, record_.FindModel(options.model));
  record_.CountIn(model_->statistics(), OperationOfTexts(*model_));
  LS_ASSIGN_OR_RETURN(scorer_, TextScorer::Make(model_, options.scoring, environment_.limits, record_.names()));
  return absl::OkStatus();
}

absl::StatusOr<TextToScore> ScoreStream::ReadText(const StreamedText& message) const {
  LS_ASSIGN_OR_RETURN(TextToScore text, scorer_->Read(message.text, message.second_text, std::nullopt));
  LS_RETURN_IF_ERROR(scorer_->CheckAnswerFits(1, text.tokens()));
  return text;
}

void ScoreStream::Submit(std::optional<Document> document) {
  while (document.has_value()) {
    std::unique_lock lock(mutex_);
    ++in_engine_;
    const int64_t ends_before = engine_ends_;
    lock.unlock();
    // Holds the stream until the engine has told the end of the document.
    auto done = [keep = shared_from_this(), question = document->question](absl::StatusOr<ScoredText> scored) {
      keep->DocumentEnded(question, std::move(scored));
    };
    // Beyond its identity's tokens a second a document is held like one that the engine has no room for.
    absl::Status status = record_.CheckTokenLimit();
    if (status.ok()) status = scorer_->Submit(document->text, record_.engine_context(), std::move(done));
    if (status.ok()) record_.ChargeTokens(document->text.tokens());
    lock.lock();
    if (!status.ok()) {
      --in_engine_;
      const bool open = !ended_.has_value() || ended_->ok();
      if (open && absl::IsResourceExhausted(status)) {
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
  // The timer holds no reference: a stream does not live on for it.
  retry_ = std::make_unique<grpc::Alarm>();
  retry_->Set(absl::ToChronoTime(ToWallClock(then)), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<ScoreStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->SubmitHeld();
  });
}

void ScoreStream::SubmitHeld() {
  std::unique_lock lock(mutex_);
  std::optional<Document> next = TakeHeld();
  lock.unlock();
  Submit(std::move(next));
  Advance();
}

std::optional<ScoreStream::Document> ScoreStream::TakeHeld() {
  if (held_.empty()) return std::nullopt;
  std::optional<Document> first = std::move(held_.front());
  held_.pop_front();
  return first;
}

void ScoreStream::DocumentEnded(const Question& question, absl::StatusOr<ScoredText> scored) {
  {
    const std::lock_guard lock(mutex_);
    --in_engine_;
    ++engine_ends_;
  }
  SubmitHeld();
  Reply(question, std::move(scored));
}

void ScoreStream::Reply(const Question& question, absl::StatusOr<ScoredText> scored) {
  if (scored.ok()) {
    const std::lock_guard lock(mutex_);
    record_.AddWork(*scored, question.arrival);
  }
  absl::StatusOr<grpc::ByteBuffer> message =
      EndsCall(scored.status()) ? scored.status() : messages_.Write(question.id, *model_, scored);
  if (!message.ok()) End(message.status());
  {
    const std::lock_guard lock(mutex_);
    --in_work_;
    if (message.ok()) answers_.push_back({*std::move(message), question.answer_bytes});
  }
  Advance();
}

void ScoreStream::OnStopping() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.has_value() && held_.empty()) return;
  }
  End(absl::UnavailableError("the server is stopping"));
}

void ScoreStream::End(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_.has_value() || ended_->ok()) ended_ = status;
    if (!ended_->ok()) {
      in_work_ -= static_cast<int64_t>(held_.size());
      held_.clear();
    }
  }
  Advance();
}

}  // namespace longshort
