#include "server/handlers/document_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "core/requests/job.h"
#include "core/schedule/refusal.h"
#include "server/handlers/scatter_gather.h"

namespace longshort::server {
namespace {

// Bounds of the retry delay of a held document. A shorter delay only adds work. A longer one leaves room unused that
// became free earlier than predicted.
constexpr absl::Duration kShortestRetry = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetry = absl::Seconds(1);

// An answer with so many bytes is made by the pool, and its result is charged to the client until then.
constexpr int64_t kLargeBytes = 64 << 10;
// What a held document takes beside its tokens.
constexpr int64_t kBytesOfHeld = 256;

int64_t BytesOf(const TextToScore& text) { return kBytesOfHeld + text.tokens() * core::TokenStream::kTokenBytes; }

}  // namespace

bool DocumentStream::HasRoom() const {
  const RequestLimits& limits = record_.environment().limits;
  const MutexLock lock(mutex_);
  return held_.empty() && window_documents_ < limits.stream_documents &&
         (window_documents_ == 0 || window_bytes_ < limits.stream_answer_bytes);
}

bool DocumentStream::HasWork() const {
  const MutexLock lock(mutex_);
  return in_work_ > 0;
}

absl::Time DocumentStream::retry_time() const {
  const MutexLock lock(mutex_);
  return retry_time_;
}

bool DocumentStream::HasHeld() const {
  const MutexLock lock(mutex_);
  return !held_.empty();
}

void DocumentStream::Written(int64_t answer_bytes) {
  const MutexLock lock(mutex_);
  --window_documents_;
  window_bytes_ -= answer_bytes;
}

absl::Status DocumentStream::Take(const StreamedText& message) {
  if (scorer_ == nullptr) {
    LS_RETURN_IF_ERROR(Open(message.options.value_or(ScoreStreamOptions())));
  } else if (message.options.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(record_.names().Of("options"), " is set in a later message; it must be in the first one only"));
  }
  const absl::Time read = MonotonicNow();
  absl::StatusOr<TextToScore> text = Read(message);
  const PendingAnswer pending{.id = message.id,
                              .answer_bytes = scorer_->AnswerBytes(1, text.ok() ? text->tokens() : 0),
                              .arrival = {.read = read, .ready = MonotonicNow()}};
  {
    const MutexLock lock(mutex_);
    ++in_work_;
    ++window_documents_;
    window_bytes_ += pending.answer_bytes;
  }
  if (!text.ok()) {
    Reply(pending, text.status());
  } else {
    Submit(Document{pending, *std::move(text)});
  }
  return absl::OkStatus();
}

absl::Status DocumentStream::Open(const ScoreStreamOptions& options) {
  LS_ASSIGN_OR_RETURN(model_, record_.FindModel(options.model));
  record_.CountIn(model_->statistics(), OperationOfTexts(*model_, options.scoring));
  LS_ASSIGN_OR_RETURN(scorer_,
                      TextScorer::Make(model_, options.scoring, record_.environment().limits, record_.names()));
  return absl::OkStatus();
}

absl::StatusOr<TextToScore> DocumentStream::Read(const StreamedText& message) const {
  LS_ASSIGN_OR_RETURN(TextToScore text, scorer_->Read(message.text, message.second_text, std::nullopt));
  LS_RETURN_IF_ERROR(scorer_->CheckAnswerFits(1, text.tokens(), record_.max_answer_bytes()));
  return text;
}

void DocumentStream::Submit(std::optional<Document> document) {
  while (document.has_value()) {
    MutexLock lock(mutex_);
    ++in_engine_;
    const int64_t ends_before = engine_ends_;
    lock.Unlock();
    // A document beyond its identity's token rate or memory is held, like one that finds the engine full.
    absl::Status status = record_.CheckTokenLimit();
    if (status.ok()) status = HoldResult(document->pending);
    if (status.ok()) {
      // `keep` holds the stream until the engine has reported the document's end.
      auto done = [this, keep = sink_.Keep(), pending = document->pending](absl::StatusOr<ScoredText> scored) {
        Ended(pending, std::move(scored));
      };
      status = scorer_->Submit(document->text, record_.engine_context(), std::move(done));
    }
    if (status.ok()) {
      record_.ChargeTokens(document->text.tokens());
    } else {
      const Refused refused = AfterRefusal(*document, status, ends_before);
      if (refused == Refused::kAgain) continue;
      if (refused == Refused::kHeld) return;
      Reply(document->pending, status);
    }
    document = TakeHeld();
  }
}

absl::Status DocumentStream::HoldResult(PendingAnswer& pending) const {
  if (pending.answer_bytes < kLargeBytes || pending.memory != nullptr) return absl::OkStatus();
  auto memory = std::make_shared<Budget::Share>(record_.MemoryShare());
  LS_RETURN_IF_ERROR(core::Hold(pending.answer_bytes, *memory));
  pending.memory = std::move(memory);
  return absl::OkStatus();
}

DocumentStream::Refused DocumentStream::AfterRefusal(Document& document, absl::Status& status, int64_t ends_before) {
  const std::optional<core::Refusal> refusal = core::GetRefusal(status);
  {
    const MutexLock lock(mutex_);
    --in_engine_;
    if (dropped_ || !absl::IsResourceExhausted(status)) return Refused::kAnswered;
    if (engine_ends_ != ends_before) return Refused::kAgain;  // a document ended meanwhile
    if (in_engine_ == 0 && !refusal.has_value()) return Refused::kAnswered;
    if (document.memory.amount() == 0) document.memory = record_.MemoryShare();
    if (absl::Status memory = core::Hold(BytesOf(document.text), document.memory); !memory.ok()) {
      status = std::move(memory);
      return Refused::kAnswered;
    }
    held_.push_back(std::move(document));
    const absl::Duration wait = refusal.value_or(core::Refusal()).retry_after;
    retry_time_ = MonotonicNow() + std::clamp(wait, kShortestRetry, kLongestRetry);
  }
  sink_.RetryLater();
  return Refused::kHeld;
}

void DocumentStream::Retry() {
  {
    const MutexLock lock(mutex_);
    if (held_.empty()) return;
    if (BytesOf(held_.front().text) >= kLargeBytes) {  // the engine gets a copy, which takes time
      return record_.RunInPool([this, keep = sink_.Keep()] { Submit(TakeHeld()); });
    }
  }
  Submit(TakeHeld());
}

std::optional<DocumentStream::Document> DocumentStream::TakeHeld() {
  const MutexLock lock(mutex_);
  if (held_.empty()) return std::nullopt;
  std::optional<Document> first = std::move(held_.front());
  held_.pop_front();
  return first;
}

void DocumentStream::Ended(const PendingAnswer& pending, absl::StatusOr<ScoredText> scored) {
  {
    const MutexLock lock(mutex_);
    --in_engine_;
    ++engine_ends_;
  }
  Retry();
  // This is the engine's thread.
  if (pending.answer_bytes < kLargeBytes) return Reply(pending, scored);
  record_.RunInPool([this, keep = sink_.Keep(), pending, scored = std::move(scored)] { Reply(pending, scored); });
}

void DocumentStream::Reply(const PendingAnswer& pending, const absl::StatusOr<ScoredText>& scored) {
  if (scored.ok()) {
    const MutexLock lock(mutex_);
    record_.AddWork(*scored, pending.arrival);
  }
  if (EndsCall(scored.status())) {
    sink_.End(scored.status());
  } else {
    sink_.Push(pending.id, *model_, scored, pending.answer_bytes);
  }
  {
    const MutexLock lock(mutex_);
    --in_work_;
  }
  sink_.Advance();
}

void DocumentStream::RemoveHeld() {
  const MutexLock lock(mutex_);
  dropped_ = true;
  in_work_ -= static_cast<int64_t>(held_.size());
  held_.clear();
}

}  // namespace longshort::server
