// GenerateStream and ScoreTexts.

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/call/call.h"
#include "server/call/generation_stream.h"
#include "server/fronts/longshort_v1/longshort_v1.h"
#include "server/handlers/document_stream.h"
#include "server/handlers/handlers.h"

namespace longshort::server {
namespace {

class GenerateStreamWork final : public GenerationStream {
 public:
  explicit GenerateStreamWork(Call& call) : GenerationStream(call) {}

 private:
  absl::Status Take() override {
    v1::GenerateRequest request;
    LS_RETURN_IF_ERROR(call_.Read(request));
    return GenerateStream(call_.record(), FromMessage(request), Sink());
  }

  absl::StatusOr<std::optional<CallAnswer>> ToAnswer(StreamEvent event) override {
    if (const auto* start = std::get_if<StreamStart>(&event); start != nullptr) tokenizer_ = start->tokenizer;
    return call_.Encode(ToMessage(std::move(event), tokenizer_.get()));
  }

  std::shared_ptr<const models::Tokenizer> tokenizer_;  // decodes the tokens; the call's mutex guards it
};

// Reads documents and writes answers as the stream's window has room. HTTP/2 flow control holds back a client that
// sends without reading. A stream that is silent for the keepalive interval sends a keepalive, if its options ask for
// it.
class ScoreStream final : public CallWork, public DocumentSink {
 public:
  explicit ScoreStream(Call& call) : call_(call), documents_(call.record(), *this) {}

 private:
  // CallWork:
  absl::Status Take() override {
    v1::ScoreTextsRequest message;
    LS_RETURN_IF_ERROR(call_.Read(message));
    const StreamedText document = FromMessage(message);
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

  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (call_.reader_gone()) answers_.clear();
    if (answers_.empty()) return std::nullopt;
    Waiting next = std::move(answers_.front());
    answers_.pop_front();
    written_answer_bytes_ = next.max_bytes;
    waiting_bytes_ -= next.answer.bytes;
    call_.SetWaitingBytes(waiting_bytes_);
    last_write_ = MonotonicNow();
    return std::move(next.answer);
  }
  void Written() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (written_answer_bytes_.has_value()) documents_.Written(*written_answer_bytes_);
  }

  // DocumentSink:
  void Push(uint64_t id, const core::ServedModel& model, const absl::StatusOr<ScoredText>& scored,
            int64_t answer_bytes) override {
    absl::StatusOr<CallAnswer> answer = call_.Encode(ToMessage(id, model, scored));
    if (!answer.ok()) return call_.End(answer.status());
    const MutexLock lock(call_.mutex());
    Add({*std::move(answer), answer_bytes});
  }
  void End(const absl::Status& status) override { call_.End(status); }
  void Advance() override { call_.Advance(); }
  void RetryLater() override {
    const MutexLock lock(call_.mutex());
    SetTimer();
  }
  std::shared_ptr<void> Keep() override { return call_.shared_from_this(); }

  struct Waiting {
    CallAnswer answer;
    std::optional<int64_t> max_bytes;  // leave the window when the answer is written; unset for a keepalive
  };

  void PushKeepAlive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    v1::ScoreTextsResponse keep_alive;
    keep_alive.mutable_keep_alive();
    absl::StatusOr<CallAnswer> answer = call_.Encode(std::move(keep_alive));
    if (answer.ok()) Add({*std::move(answer), std::nullopt});
  }

  void Add(Waiting waiting) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    waiting_bytes_ += waiting.answer.bytes;
    call_.SetWaitingBytes(waiting_bytes_);
    answers_.push_back(std::move(waiting));
  }

  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    absl::Time next = documents_.HasHeld() ? documents_.retry_time() : absl::InfiniteFuture();
    if (keep_alives_) next = std::min(next, last_write_ + call_.environment().keepalive_interval);
    call_.SetWorkTimer(next);
  }

  Call& call_;
  DocumentStream documents_;
  std::deque<Waiting> answers_ ABSL_GUARDED_BY(call_.mutex());                  // not written yet
  size_t waiting_bytes_ ABSL_GUARDED_BY(call_.mutex()) = 0;                     // of these
  std::optional<int64_t> written_answer_bytes_ ABSL_GUARDED_BY(call_.mutex());  // of the pending write
  bool keep_alives_ ABSL_GUARDED_BY(call_.mutex()) = false;
  absl::Time last_write_ ABSL_GUARDED_BY(call_.mutex());  // when the last write began
};

}  // namespace

std::unique_ptr<CallWork> MakeGenerateStream(Call& call) { return std::make_unique<GenerateStreamWork>(call); }

std::unique_ptr<CallWork> MakeScoreTexts(Call& call) { return std::make_unique<ScoreStream>(call); }

}  // namespace longshort::server
