// GenerateStream and ScoreTexts.

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/admission/stream_events.h"
#include "server/handlers/document_stream.h"
#include "server/handlers/handlers.h"
#include "server/longshort_v1/messages.h"
#include "server/longshort_v1/rpcs.h"
#include "server/rpc/call.h"

namespace longshort::server {
namespace {

// The limit is four of the longest merged messages: minutes of text, or seconds of tokens with all their alternatives.
// So only a very slow reader pauses its work (its cache may be evicted meanwhile). Work resumes while one message still
// waits, so that the reader need not wait for the engine.
constexpr size_t kPauseBytes = 256 << 10;
constexpr size_t kResumeBytes = 64 << 10;

// Writes a streamed generation. While a write is pending, the engine's events wait in StreamEvents, which merges them.
//
// Generation pauses while the client reads too slowly: while more than 256 KiB wait, the engine generates nothing for
// this stream. So the stream holds at most that, one step's output, and the echo and description
// of the prompt. A stream that is silent for the keepalive interval sends a keepalive.
//
// Thread-safe: the engine's threads push, a delivery thread begins the writes, gRPC's threads react.
class GenerationStream final : public CallWork, public GenerationSink {
 public:
  explicit GenerationStream(Call& call) : call_(call), keepalive_interval_(call.environment().keepalive_interval) {}

  // GenerationSink: keepalives start with Open. Push writes itself only if the delivery thread is far behind. After
  // Close the waiting events are written, unless the client is gone; then the call ends.
  void Open(int32_t completions, StreamStart start) override {
    const MutexLock lock(call_.mutex());
    in_work_ = true;
    events_.emplace(completions);
    tokenizer_ = start.tokenizer;
    events_->Push(std::move(start));
    last_write_ = MonotonicNow();
    call_.SetWorkTimer(last_write_ + keepalive_interval_);
  }

  void Submitted(bool taken) override {
    {
      const MutexLock lock(call_.mutex());
      submitted_ = true;
      if (!taken) events_.reset();
    }
    call_.Advance();
  }

  void Push(StreamEvent event) override {
    {
      const MutexLock lock(call_.mutex());
      if (!events_.has_value()) return;
      events_->Push(std::move(event));
      const size_t waiting = events_->waiting_bytes();
      if (call_.writing()) return SetPause(waiting);
      if (waiting <= kPauseBytes) return call_.AdvanceLater();
    }
    call_.Advance();
  }

  void Close(const absl::Status& status) override {
    {
      const MutexLock lock(call_.mutex());
      in_work_ = false;
    }
    call_.End(status);
  }

 private:
  // CallWork:
  absl::Status Take(google::protobuf::Message& request) override {
    return GenerateStream(call_.record(), FromMessage(static_cast<const v1::GenerateRequest&>(request)),
                          std::shared_ptr<GenerationSink>(call_.shared_from_this(), this));
  }

  void Cancel(const absl::Status& /*reason*/) override { call_.record().Cancel(); }

  void OnTimer(absl::Time now) override {
    const MutexLock lock(call_.mutex());
    if (!events_.has_value()) return;
    // A stream with a pending write is not silent.
    if (call_.writing()) {
      last_write_ = now;
    } else if (now - last_write_ >= keepalive_interval_) {
      events_->Push(KeepAlive());
      last_write_ = now;
    }
    call_.SetWorkTimer(last_write_ + keepalive_interval_);
  }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return in_work_; }

  std::optional<grpc::ByteBuffer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (call_.reader_gone()) events_.reset();
    std::optional<StreamEvent> event;
    if (events_.has_value() && submitted_) event = events_->Pop();
    SetPause(event.has_value() ? events_->waiting_bytes() : 0);
    if (!event.has_value()) return std::nullopt;
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(ToMessage(*std::move(event), tokenizer_.get()));
    if (!bytes.ok()) return call_.NoteEnd(bytes.status()), std::nullopt;
    last_write_ = MonotonicNow();
    return *std::move(bytes);
  }

  // Pauses or resumes the work by the number of bytes that wait behind the pending message. The pause ends when the
  // client has read that message; otherwise the write timer ends the call.
  void SetPause(size_t waiting_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (waiting_bytes > kPauseBytes) {
      call_.record().Pause(true);
    } else if (waiting_bytes <= kResumeBytes) {
      call_.record().Pause(false);
    }
  }

  Call& call_;
  const absl::Duration keepalive_interval_;

  std::optional<StreamEvents> events_ ABSL_GUARDED_BY(call_.mutex());  // unset once the client can receive nothing
  std::shared_ptr<const models::Tokenizer> tokenizer_ ABSL_GUARDED_BY(call_.mutex());  // decodes the tokens
  bool in_work_ ABSL_GUARDED_BY(call_.mutex()) = false;                                // opened and not closed
  bool submitted_ ABSL_GUARDED_BY(call_.mutex()) = false;                              // until then events wait
  absl::Time last_write_ ABSL_GUARDED_BY(call_.mutex());                               // when the last write began
};

// Reads documents and writes answers as the stream's window has room. HTTP/2 flow control holds back a client that
// sends without reading. A stream that is silent for the keepalive interval sends a keepalive, if its options ask for
// it.
class ScoreStream final : public CallWork, public DocumentSink {
 public:
  explicit ScoreStream(Call& call) : call_(call), documents_(call.record(), *this) {}

 private:
  // CallWork:
  absl::Status Take(google::protobuf::Message& message) override {
    const StreamedText document = FromMessage(static_cast<const v1::ScoreTextsRequest&>(message));
    LS_RETURN_IF_ERROR(documents_.Take(document));
    if (document.options.has_value() && document.options->keep_alives) {
      const MutexLock lock(call_.mutex());
      keep_alives_ = true;
      last_write_ = MonotonicNow();
      SetTimer();
    }
    return absl::OkStatus();
  }
  void Cancel(const absl::Status& reason) override {
    call_.record().Cancel();
    call_.End(reason);
  }
  void OnTimer(absl::Time now) override {
    if (documents_.HasHeld() && now >= documents_.retry_time()) documents_.Retry();
    const MutexLock lock(call_.mutex());
    if (keep_alives_ && now - last_write_ >= call_.environment().keepalive_interval) {
      last_write_ = now;
      if (answers_.empty() && !call_.writing()) PushKeepAlive();
    }
    SetTimer();
  }
  bool HasRoom() const override { return documents_.HasRoom(); }
  bool MayBeIdle() const override { return true; }
  bool HasWork() const override { return documents_.HasWork(); }
  bool HasHeld() const override { return documents_.HasHeld(); }
  void RemoveHeld() override { documents_.RemoveHeld(); }

  std::optional<grpc::ByteBuffer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (call_.reader_gone()) answers_.clear();
    if (answers_.empty()) return std::nullopt;
    Answer answer = std::move(answers_.front());
    answers_.pop_front();
    written_answer_bytes_ = answer.max_bytes;
    last_write_ = MonotonicNow();
    return std::move(answer.message);
  }
  void Written() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (written_answer_bytes_.has_value()) documents_.Written(*written_answer_bytes_);
  }

  // DocumentSink:
  void Push(uint64_t id, const core::ServedModel& model, const absl::StatusOr<ScoredText>& scored,
            int64_t answer_bytes) override {
    absl::StatusOr<grpc::ByteBuffer> message = SerializeMessage(ToMessage(id, model, scored));
    if (!message.ok()) return call_.End(message.status());
    const MutexLock lock(call_.mutex());
    answers_.push_back({*std::move(message), answer_bytes});
  }
  void End(const absl::Status& status) override { call_.End(status); }
  void Advance() override { call_.Advance(); }
  void RetryLater() override {
    const MutexLock lock(call_.mutex());
    SetTimer();
  }
  std::shared_ptr<void> Keep() override { return call_.shared_from_this(); }

  struct Answer {
    grpc::ByteBuffer message;
    std::optional<int64_t> max_bytes;  // leave the window when the answer is written; unset for a keepalive
  };

  void PushKeepAlive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::ScoreTextsResponse keep_alive;
    keep_alive.mutable_keep_alive();
    absl::StatusOr<grpc::ByteBuffer> message = SerializeMessage(keep_alive);
    if (message.ok()) answers_.push_back({*std::move(message), std::nullopt});
  }

  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    absl::Time next = documents_.HasHeld() ? documents_.retry_time() : absl::InfiniteFuture();
    if (keep_alives_) next = std::min(next, last_write_ + call_.environment().keepalive_interval);
    call_.SetWorkTimer(next);
  }

  Call& call_;
  DocumentStream documents_;
  std::deque<Answer> answers_ ABSL_GUARDED_BY(call_.mutex());                   // not written yet
  std::optional<int64_t> written_answer_bytes_ ABSL_GUARDED_BY(call_.mutex());  // of the pending write
  bool keep_alives_ ABSL_GUARDED_BY(call_.mutex()) = false;
  absl::Time last_write_ ABSL_GUARDED_BY(call_.mutex());  // when the last write began
};

}  // namespace

std::unique_ptr<CallWork> MakeGenerateStream(Call& call) { return std::make_unique<GenerationStream>(call); }

std::unique_ptr<CallWork> MakeScoreTexts(Call& call) { return std::make_unique<ScoreStream>(call); }

}  // namespace longshort::server
