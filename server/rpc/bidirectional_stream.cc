#include "server/rpc/bidirectional_stream.h"

#include <utility>

#include "base/clock.h"

namespace longshort {

BidirectionalStream::BidirectionalStream(const CallEnvironment& environment, const CallNames& names,
                                         grpc::CallbackServerContext* context)
    : environment_(environment),
      call_(environment, names, *context),
      idle_(environment.gate),
      watch_(environment.slow_reader_timeout) {}

BidirectionalStream::~BidirectionalStream() { environment_.gate.Forget(gate_watch_); }

BidirectionalStream* BidirectionalStream::Start(const std::shared_ptr<BidirectionalStream>& stream) {
  stream->grpc_reference_ = stream;
  stream->gate_watch_ = stream->environment_.gate.WhenClosed([weak = stream->weak_from_this()] {
    if (const std::shared_ptr<BidirectionalStream> open = weak.lock()) open->OnStopping();
  });
  if (absl::Status status = stream->record().Admit(); !status.ok()) {
    stream->End(status);
  } else {
    stream->Advance();
  }
  return stream.get();
}

void BidirectionalStream::OnReadDone(bool ok) {
  std::unique_lock lock(mutex_);
  if (!ok) NoteEnd(absl::OkStatus());  // the client's half-close
  if (ok && !ended_.has_value()) {
    ++busy_;
    lock.unlock();
    if (const absl::Status status = Take(incoming_); !status.ok()) {
      Cancel();
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

void BidirectionalStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    watch_.End();
    Written();
    if (!ok) reader_gone_ = true;
  }
  if (ok) return Advance();
  Cancel();
  End(absl::CancelledError("the client went away"));
}

void BidirectionalStream::OnCancel() {
  Cancel();
  End(absl::CancelledError("the client cancelled"));
}

void BidirectionalStream::Advance() {
  const std::shared_ptr<BidirectionalStream> keep = shared_from_this();  // finished, gRPC may let go
  std::unique_lock lock(mutex_);
  for (;;) {
    if (finished_) return;
    bool write = false;
    if (!watch_.writing()) {
      std::optional<grpc::ByteBuffer> answer = NextAnswer();
      write = answer.has_value();
      if (write) outgoing_ = *std::move(answer);
    }
    const bool read = !reading_ && !ended_.has_value() && HasRoom();
    if (!write && !read) break;
    if (write) {
      const absl::Time now = MonotonicNow();
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
  idle_.Set(!ended_.has_value() && !HasWork() && !watch_.writing() && busy_ == 0);
  if (!ended_.has_value() || HasWork() || watch_.writing() || busy_ > 0) return;
  finished_ = true;
  const absl::Status status = *ended_;
  lock.unlock();
  Finish(call_.Finish(status));
}

void BidirectionalStream::WatchReader(absl::Time now) {
  // The timer holds no reference: a stream does not live on for it.
  look_ = std::make_unique<grpc::Alarm>();
  look_->Set(absl::ToChronoTime(ToWallClock(watch_.NextLook(now))), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<BidirectionalStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->LookAfterReader();
  });
}

void BidirectionalStream::LookAfterReader() {
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

void BidirectionalStream::OnStopping() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.has_value() && !HasHeld()) return;
  }
  End(absl::UnavailableError("the server is stopping"));
}

void BidirectionalStream::NoteEnd(const absl::Status& status) {
  if (!ended_.has_value() || (ended_->ok() && !status.ok())) ended_ = status;
  if (!ended_->ok()) DropHeld();
}

void BidirectionalStream::End(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    NoteEnd(status);
  }
  Advance();
}

}  // namespace longshort
