#include "server/rpc/generation_stream.h"

#include <utility>

#include "base/clock.h"
#include "server/handlers/generate.h"

namespace longshort {
namespace {

// Four of the longest merged messages: minutes of text or seconds of tokens with all their alternatives, so that only a
// reader that is really slow pauses its work (its cache may go meanwhile). Work goes on while one message still waits,
// so that the reader need not wait for the engine.
constexpr size_t kPauseBytes = 256 << 10;
constexpr size_t kResumeBytes = 64 << 10;

}  // namespace

GenerationStream::GenerationStream(Call& call, std::unique_ptr<Messages> messages)
    : call_(call),
      delivery_(call.environment().deliveries.Next()),
      keepalive_interval_(call.environment().keepalive_interval),
      messages_(std::move(messages)) {}

absl::Status GenerationStream::Take(google::protobuf::Message& request) {
  return GenerateStream(call_.record(), messages_->Read(request),
                        std::shared_ptr<GenerationSink>(call_.shared_from_this(), this));
}

void GenerationStream::Open(int32_t completions, StreamStart start) {
  const std::lock_guard lock(call_.mutex());
  in_work_ = true;
  events_.emplace(completions);
  events_->Push(std::move(start));
  last_write_ = MonotonicNow();
  call_.LookAt(last_write_ + keepalive_interval_);
}

void GenerationStream::Submitted(bool taken) {
  {
    const std::lock_guard lock(call_.mutex());
    submitted_ = true;
    if (!taken) events_.reset();
  }
  call_.Advance();
}

void GenerationStream::Push(StreamEvent event) {
  {
    const std::lock_guard lock(call_.mutex());
    if (!events_.has_value()) return;
    events_->Push(std::move(event));
    const size_t waiting = events_->waiting_bytes();
    if (call_.writing()) return SetPause(waiting);
    if (waiting <= kPauseBytes) return AdvanceLater();
  }
  call_.Advance();
}

void GenerationStream::Close(const absl::Status& status) {
  {
    const std::lock_guard lock(call_.mutex());
    in_work_ = false;
  }
  call_.End(status);
}

void GenerationStream::AdvanceLater() {
  if (std::exchange(scheduled_, true)) return;
  delivery_.Post([this, keep = call_.shared_from_this()] {
    {
      const std::lock_guard lock(call_.mutex());
      scheduled_ = false;
    }
    call_.Advance();
  });
}

std::optional<grpc::ByteBuffer> GenerationStream::NextAnswer() {
  if (call_.reader_gone()) events_.reset();
  std::optional<StreamEvent> event;
  if (events_.has_value() && submitted_) event = events_->Pop();
  SetPause(event.has_value() ? events_->waiting_bytes() : 0);
  if (!event.has_value()) return std::nullopt;
  absl::StatusOr<grpc::ByteBuffer> bytes = messages_->Write(*std::move(event));
  if (!bytes.ok()) return call_.NoteEnd(bytes.status()), std::nullopt;
  last_write_ = MonotonicNow();
  return *std::move(bytes);
}

void GenerationStream::SetPause(size_t waiting_bytes) {
  // The client's taking the message that is on its way will end the pause, or the timeout the call.
  if (waiting_bytes > kPauseBytes) {
    call_.record().Pause(true);
  } else if (waiting_bytes <= kResumeBytes) {
    call_.record().Pause(false);
  }
}

void GenerationStream::Look(absl::Time now) {
  const std::lock_guard lock(call_.mutex());
  if (!events_.has_value()) return;
  // While a message is on its way the stream is not silent.
  if (call_.writing()) {
    last_write_ = now;
  } else if (now - last_write_ >= keepalive_interval_) {
    events_->Push(KeepAlive());
    last_write_ = now;
  }
  call_.LookAt(last_write_ + keepalive_interval_);
}

}  // namespace longshort
