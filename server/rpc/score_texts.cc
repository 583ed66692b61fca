#include "server/rpc/score_texts.h"

#include <algorithm>
#include <variant>

#include "base/clock.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/requests/item_error.h"
#include "server/rpc/message_bytes.h"

namespace longshort {
namespace {

// How long a document is held at a time: sooner would only be in the way, later would leave room unused that came
// before it was predicted.
constexpr absl::Duration kShortestRetry = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetry = absl::Seconds(1);

}  // namespace

TextStream::TextStream(const CallEnvironment& environment, grpc::CallbackServerContext* context)
    : environment_(environment),
      record_(environment, "ScoreTexts", *context),
      watch_(environment.slow_reader_timeout) {}

TextStream::~TextStream() { environment_.gate.Forget(gate_watch_); }

TextStream* TextStream::Start(const CallEnvironment& environment, grpc::CallbackServerContext* context) {
  auto stream = std::shared_ptr<TextStream>(new TextStream(environment, context));
  stream->grpc_reference_ = stream;
  stream->gate_watch_ = environment.gate.WhenClosed([weak = stream->weak_from_this()] {
    if (const std::shared_ptr<TextStream> open = weak.lock()) open->OnStopping();
  });
  if (absl::Status status = stream->record_.Admit(); !status.ok()) {
    stream->End(status);
  } else {
    stream->Advance();
  }
  return stream.get();
}

void TextStream::OnReadDone(bool ok) {
  std::unique_lock lock(mutex_);
  if (!ok && !ended_.has_value()) ended_ = absl::OkStatus();  // the client's half-close
  if (ok && !ended_.has_value()) {
    ++busy_;
    lock.unlock();
    if (absl::Status status = TakeMessage(incoming_); !status.ok()) {
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

void TextStream::OnWriteDone(bool ok) {
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

void TextStream::OnCancel() {
  record_.Cancel();
  End(absl::CancelledError("the client cancelled"));
}

bool TextStream::WindowHasRoom() const {
  return window_documents_ < environment_.limits.stream_documents &&
         (window_documents_ == 0 || window_bytes_ < environment_.limits.stream_answer_bytes);
}

void TextStream::Advance() {
  const std::shared_ptr<TextStream> keep = shared_from_this();  // finished, gRPC may let go
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
    if (write) StartWrite(&outgoing_);
    if (read) StartRead(&incoming_);
    lock.lock();
    --busy_;
  }
  if (!ended_.has_value() || in_work_ > 0 || watch_.writing() || busy_ > 0) return;
  finished_ = true;
  const absl::Status status = *ended_;
  lock.unlock();
  Finish(record_.Finish(status));
}

void TextStream::WatchReader(absl::Time now) {
  // The timer holds no reference: a stream does not live on for it.
  look_ = std::make_unique<grpc::Alarm>();
  look_->Set(absl::ToChronoTime(ToWallClock(watch_.NextLook(now))), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<TextStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->LookAfterReader();
  });
}

void TextStream::LookAfterReader() {
  std::unique_lock lock(mutex_);
  look_ = nullptr;
  if (finished_ || !watch_.writing()) return;
  const absl::Time now = MonotonicNow();
  if (!watch_.IsStuck(now)) return WatchReader(now);
  ++busy_;
  lock.unlock();
  record_.CancelSlowReader();
  lock.lock();
  --busy_;
  lock.unlock();
  Advance();
}

absl::Status TextStream::TakeMessage(const grpc::ByteBuffer& bytes) {
  LS_ASSIGN_OR_RETURN(const v1::ScoreTextsRequest request, ParseMessage<v1::ScoreTextsRequest>(bytes));
  if (scorer_ == nullptr) {
    LS_RETURN_IF_ERROR(Open(request.options()));
  } else if (request.has_options()) {
    return absl::InvalidArgumentError("options is set in a later message; it must be in the first one only");
  }
  absl::StatusOr<TextToScore> text = ReadText(request);
  const Question question{.id = request.id(), .answer_bytes = scorer_->AnswerBytes(1, text.ok() ? text->tokens() : 0)};
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

absl::Status TextStream::Open(const v1::ScoreTextsOptions& options) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedModel> model, record_.FindModel(options.model()));
  LS_ASSIGN_OR_RETURN(scorer_, TextScorer::Make(std::move(model), options, environment_.limits));
  return absl::OkStatus();
}

absl::StatusOr<TextToScore> TextStream::ReadText(const v1::ScoreTextsRequest& request) const {
  const v1::Input* second = request.has_second_input() ? &request.second_input() : nullptr;
  LS_ASSIGN_OR_RETURN(TextToScore text, scorer_->Read(request.input(), "input", second, "second_input"));
  LS_RETURN_IF_ERROR(scorer_->CheckAnswerFits(1, text.tokens()));
  return text;
}

void TextStream::Submit(std::optional<Document> document) {
  while (document.has_value()) {
    std::unique_lock lock(mutex_);
    ++in_engine_;
    const int64_t ends_before = engine_ends_;
    lock.unlock();
    // Holds the stream until the engine has told the end of the document.
    auto done = [keep = shared_from_this(), question = document->question](absl::StatusOr<ScoredText> scored) {
      keep->DocumentEnded(question, std::move(scored));
    };
    absl::Status status = scorer_->Submit(document->text, record_.engine_context(), std::move(done));
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

void TextStream::Hold(Document document, const absl::Status& refusal) {
  held_.push_back(std::move(document));
  const absl::Duration wait = GetRefusal(refusal).value_or(Refusal()).retry_after;
  const absl::Time then = MonotonicNow() + std::clamp(wait, kShortestRetry, kLongestRetry);
  // The timer holds no reference: a stream does not live on for it.
  retry_ = std::make_unique<grpc::Alarm>();
  retry_->Set(absl::ToChronoTime(ToWallClock(then)), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<TextStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->SubmitHeld();
  });
}

void TextStream::SubmitHeld() {
  std::unique_lock lock(mutex_);
  std::optional<Document> next = TakeHeld();
  lock.unlock();
  Submit(std::move(next));
  Advance();
}

std::optional<TextStream::Document> TextStream::TakeHeld() {
  if (held_.empty()) return std::nullopt;
  std::optional<Document> first = std::move(held_.front());
  held_.pop_front();
  return first;
}

void TextStream::DocumentEnded(const Question& question, absl::StatusOr<ScoredText> scored) {
  {
    const std::lock_guard lock(mutex_);
    --in_engine_;
    ++engine_ends_;
  }
  SubmitHeld();
  Reply(question, std::move(scored));
}

void TextStream::Reply(const Question& question, absl::StatusOr<ScoredText> scored) {
  if (scored.ok()) {
    const std::lock_guard lock(mutex_);
    record_.AddWork(*scored);
  }
  absl::StatusOr<grpc::ByteBuffer> message =
      EndsCall(scored.status()) ? scored.status() : MessageAbout(question, std::move(scored));
  if (!message.ok()) End(message.status());
  {
    const std::lock_guard lock(mutex_);
    --in_work_;
    if (message.ok()) answers_.push_back({*std::move(message), question.answer_bytes});
  }
  Advance();
}

absl::StatusOr<grpc::ByteBuffer> TextStream::MessageAbout(const Question& question,
                                                          absl::StatusOr<ScoredText> scored) const {
  v1::ScoreTextsResponse response;
  response.set_id(question.id);
  *response.mutable_model() = record_.answering_model();
  if (!scored.ok()) {
    *response.mutable_error() = ToItemError(scored.status());
  } else if (auto* score = std::get_if<v1::TextScore>(&scored->result); score != nullptr) {
    *response.mutable_score() = std::move(*score);
  } else {
    *response.mutable_classification() = std::get<v1::TextClassification>(std::move(scored->result));
  }
  return SerializeMessage(response);
}

void TextStream::OnStopping() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.has_value() && held_.empty()) return;
  }
  End(absl::UnavailableError("the server is stopping"));
}

void TextStream::End(const absl::Status& status) {
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
