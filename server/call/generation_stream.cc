#include "server/call/generation_stream.h"

#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace longshort::server {
namespace {

// Four of the longest merged messages: minutes of text, or seconds of tokens with all their alternatives. So only a
// very slow reader pauses its work (its cache may be evicted meanwhile).
constexpr size_t kMostWaiting = 256 << 10;

}  // namespace

GenerationStream::GenerationStream(Call& call)
    : call_(call), keepalive_interval_(call.environment().keepalive_interval) {}

void GenerationStream::Open(int32_t completions, StreamStart start) {
  const MutexLock lock(call_.mutex());
  in_work_ = true;
  events_.emplace(completions);
  events_->Push(std::move(start));
  last_write_ = MonotonicNow();
  call_.SetWorkTimer(last_write_ + keepalive_interval_);
}

void GenerationStream::Submitted(bool taken) {
  {
    const MutexLock lock(call_.mutex());
    submitted_ = true;
    if (!taken) events_.reset();
  }
  call_.Advance();
}

void GenerationStream::Push(StreamEvent event) {
  {
    const MutexLock lock(call_.mutex());
    if (!events_.has_value()) return;
    events_->Push(std::move(event));
    const size_t waiting = events_->waiting_bytes();
    call_.SetWaitingBytes(events_->waiting_memory());
    if (call_.writing()) return call_.record().PauseAbove(kMostWaiting, waiting);
    if (waiting <= kMostWaiting) return call_.AdvanceLater();
  }
  call_.Advance();
}

void GenerationStream::Close(const absl::Status& status) {
  {
    const MutexLock lock(call_.mutex());
    in_work_ = false;
    call_.NoteEnd(status);  // together with the end of the work, so that no thread ends the call with OK
  }
  call_.Advance();
}

void GenerationStream::OnTimer(absl::Time now) {
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

std::optional<CallAnswer> GenerationStream::NextAnswer() {
  if (call_.reader_gone()) events_.reset();
  while (events_.has_value() && submitted_) {
    std::optional<StreamEvent> event = events_->Pop();
    if (!event.has_value()) break;
    absl::StatusOr<std::optional<CallAnswer>> answer = ToAnswer(*std::move(event));
    if (!answer.ok()) {
      call_.NoteEnd(answer.status());
      break;
    }
    if (!answer->has_value()) continue;
    call_.record().PauseAbove(kMostWaiting, events_->waiting_bytes());
    call_.SetWaitingBytes(events_->waiting_memory());
    last_write_ = MonotonicNow();
    return *std::move(answer);
  }
  call_.record().PauseAbove(kMostWaiting, 0);
  return std::nullopt;
}

}  // namespace longshort::server
