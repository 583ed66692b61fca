#include "server/rpc/stream_writer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace longshort {
namespace {

// Four of the longest merged messages: minutes of text or seconds of tokens with all their alternatives, so that only a
// reader that is really slow pauses its work (its cache may go meanwhile). Work goes on while one message still waits,
// so that the reader need not wait for the engine.
constexpr size_t kPauseBytes = 256 << 10;
constexpr size_t kResumeBytes = 64 << 10;

}  // namespace

StreamWriter::StreamWriter(const CallEnvironment& environment, const CallNames& names,
                           grpc::CallbackServerContext* context, SerializeEvent serialize)
    : call_(environment, names, *context),
      delivery_(environment.deliveries.Next()),
      keepalive_interval_(environment.keepalive_interval),
      serialize_(std::move(serialize)),
      watch_(environment.slow_reader_timeout) {}

std::shared_ptr<StreamWriter> StreamWriter::Make(const CallEnvironment& environment, const CallNames& names,
                                                 grpc::CallbackServerContext* context, SerializeEvent serialize) {
  auto writer = std::shared_ptr<StreamWriter>(new StreamWriter(environment, names, context, std::move(serialize)));
  writer->grpc_reference_ = writer;
  return writer;
}

void StreamWriter::Open(int32_t completions, StreamStart start) {
  {
    const std::lock_guard lock(mutex_);
    events_.emplace(completions);
    events_->Push(std::move(start));
    last_write_ = MonotonicNow();
    SetTimer(last_write_);
  }
  Advance();
}

void StreamWriter::Submitted(bool taken) {
  {
    const std::lock_guard lock(mutex_);
    submitted_ = true;
    if (!taken) events_.reset();
  }
  Advance();
}

void StreamWriter::Push(StreamEvent event) {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.has_value()) return;
    events_->Push(std::move(event));
    if (watch_.writing()) return SetPause();
    if (events_->waiting_bytes() <= kPauseBytes) return ScheduleAdvance();
  }
  Advance();
}

void StreamWriter::Close(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = status;
  }
  Advance();
}

void StreamWriter::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    watch_.End();
    if (!ok) events_.reset();
  }
  if (!ok) record().Cancel();
  Advance();
}

void StreamWriter::ScheduleAdvance() {
  if (std::exchange(scheduled_, true)) return;
  delivery_.Post([self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->scheduled_ = false;
    }
    self->Advance();
  });
}

void StreamWriter::Advance() {
  std::unique_lock lock(mutex_);
  if (finished_) return;
  if (events_.has_value() && !submitted_) return;
  const bool write = !watch_.writing() && TakeNext();
  SetPause();
  if (write) {
    lock.unlock();  // a write has begun: that keeps others away
    call_.BeginAnswer();
    StartWrite(&on_its_way_);
    return;
  }
  if (watch_.writing() || cancelling_ || !closed_.has_value()) return;
  finished_ = true;
  alarm_.reset();
  const absl::Status status = *closed_;
  lock.unlock();
  Finish(call_.Finish(status));
}

bool StreamWriter::TakeNext() {
  if (!events_.has_value()) return false;
  std::optional<StreamEvent> event = events_->Pop();
  if (!event.has_value()) return false;
  absl::StatusOr<grpc::ByteBuffer> bytes = serialize_(*std::move(event));
  if (!bytes.ok()) {
    closed_ = bytes.status();
    return false;
  }
  on_its_way_ = *std::move(bytes);
  last_write_ = MonotonicNow();
  watch_.Begin(last_write_);
  return true;
}

void StreamWriter::SetPause() {
  // Only what waits behind a message on its way: the client's taking that will end the pause, or the timeout the call.
  const size_t waiting = watch_.writing() && events_.has_value() ? events_->waiting_bytes() : 0;
  if (waiting > kPauseBytes) {
    record().Pause(true);
  } else if (waiting <= kResumeBytes) {
    record().Pause(false);
  }
}

void StreamWriter::SetTimer(absl::Time now) {
  // While a message is on its way the stream is not silent.
  const absl::Time silent = (watch_.writing() ? now : last_write_) + keepalive_interval_;
  // The timer holds no reference: a stream does not live on for it.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(ToWallClock(std::min(silent, watch_.NextLook(now)))),
              [weak = weak_from_this()](bool reached) {
                const std::shared_ptr<StreamWriter> writer = weak.lock();
                if (reached && writer != nullptr) writer->OnTimer();
              });
}

void StreamWriter::OnTimer() {
  std::unique_lock lock(mutex_);
  if (finished_ || !events_.has_value()) return;
  const absl::Time now = MonotonicNow();
  if (watch_.IsStuck(now)) {
    cancelling_ = true;
    lock.unlock();
    call_.CancelSlowReader();
    lock.lock();
    cancelling_ = false;
  } else {
    if (!watch_.writing() && now - last_write_ >= keepalive_interval_) {
      events_->Push(KeepAlive());
      last_write_ = now;
    }
    SetTimer(now);
  }
  lock.unlock();
  Advance();
}

}  // namespace longshort
