#include "server/open_inference_v2/infer_stream.h"

#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "server/open_inference_v2/names.h"
#include "server/rpc/message_bytes.h"

namespace longshort {

InferStream::InferStream(const CallEnvironment& environment, grpc::CallbackServerContext* context)
    : environment_(environment),
      call_(environment, kModelStreamInferNames, *context),
      delivery_(environment.deliveries.Next()),
      idle_(environment.gate),
      watch_(environment.slow_reader_timeout) {}

InferStream::~InferStream() { environment_.gate.Forget(gate_watch_); }

InferStream* InferStream::Start(const CallEnvironment& environment, grpc::CallbackServerContext* context) {
  auto stream = std::shared_ptr<InferStream>(new InferStream(environment, context));
  stream->grpc_reference_ = stream;
  stream->gate_watch_ = environment.gate.WhenClosed([weak = stream->weak_from_this()] {
    if (const std::shared_ptr<InferStream> open = weak.lock()) open->OnStopping();
  });
  if (absl::Status status = stream->call_.record().Admit(); !status.ok()) {
    stream->End(status);
  } else {
    stream->Advance();
  }
  return stream.get();
}

void InferStream::OnReadDone(bool ok) {
  std::unique_lock lock(mutex_);
  if (!ok && !ended_.has_value()) ended_ = absl::OkStatus();  // the client's half-close
  if (ok && !ended_.has_value()) {
    ++busy_;
    lock.unlock();
    if (const absl::Status status = TakeRequest(); !status.ok()) {
      Cancel();
      End(status);
    }
    lock.lock();
    --busy_;
  }
  reading_ = false;  // not before: the next read overwrites the message
  lock.unlock();
  Advance();
}

absl::Status InferStream::TakeRequest() {
  LS_ASSIGN_OR_RETURN(inference::ModelInferRequest message, TakeMessage<inference::ModelInferRequest>(incoming_));
  const auto request = std::make_shared<StreamedRequest>(shared_from_this(), call_.record(), ++requests_);
  {
    const std::lock_guard lock(mutex_);
    in_work_.insert(request);
    in_order_.push_back(request);
  }
  absl::Status status = request->Plan(std::move(message));
  if (status.ok() && request->is_generation()) {
    const std::lock_guard lock(mutex_);
    in_order_.pop_back();  // itself: one message is read at a time, and it has not ended
  }
  if (status.ok()) status = request->Submit();
  if (!status.ok()) request->End(status);
  return absl::OkStatus();
}

void InferStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    watch_.End();
    if (!ok) reader_gone_ = true;
  }
  if (ok) return Advance();
  Cancel();
  End(absl::CancelledError("the client went away"));
}

void InferStream::OnCancel() {
  Cancel();
  End(absl::CancelledError("the client cancelled"));
}

void InferStream::NoteAnswers(const std::shared_ptr<StreamedRequest>& request) {
  for (; !in_order_.empty() && in_order_.front()->ended(); in_order_.pop_front()) Note(in_order_.front());
  for (const std::shared_ptr<StreamedRequest>& waiting : in_order_) {
    if (waiting == request) return;
  }
  Note(request);
}

void InferStream::Note(const std::shared_ptr<StreamedRequest>& request) {
  if (!std::exchange(request->noted, true)) ready_.push_back(request);
}

void InferStream::AdvanceLater() {
  if (watch_.writing() || std::exchange(scheduled_, true)) return;  // what is written will be followed
  delivery_.Post([self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->scheduled_ = false;
    }
    self->Advance();
  });
}

void InferStream::Advance() {
  const std::shared_ptr<InferStream> keep = shared_from_this();  // finished, gRPC may let go
  std::unique_lock lock(mutex_);
  for (;;) {
    if (finished_) return;
    const bool write = !watch_.writing() && TakeAnswer();
    const bool read = !reading_ && !ended_.has_value() &&
                      static_cast<int64_t>(in_work_.size()) < environment_.limits.stream_documents;
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
  idle_.Set(!ended_.has_value() && in_work_.empty() && !watch_.writing() && busy_ == 0);
  if (!ended_.has_value() || !in_work_.empty() || watch_.writing() || busy_ > 0) return;
  finished_ = true;
  const absl::Status status = *ended_;
  lock.unlock();
  Finish(call_.Finish(status));
}

bool InferStream::TakeAnswer() {
  while (!ready_.empty()) {
    const std::shared_ptr<StreamedRequest> request = std::move(ready_.front());
    ready_.pop_front();
    request->noted = false;
    std::optional<inference::ModelStreamInferResponse> answer;
    if (reader_gone_) {
      request->Drop();
    } else {
      answer = request->Take();
    }
    if (request->finished()) {
      in_work_.erase(request);
    } else if (answer.has_value()) {
      Note(request);  // it may have more to say, after the others
    }
    if (!answer.has_value()) continue;
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(*answer);
    if (bytes.ok()) return outgoing_ = *std::move(bytes), true;
    if (!ended_.has_value() || ended_->ok()) ended_ = bytes.status();
  }
  return false;
}

void InferStream::WatchReader(absl::Time now) {
  // The timer holds no reference: a stream does not live on for it.
  look_ = std::make_unique<grpc::Alarm>();
  look_->Set(absl::ToChronoTime(ToWallClock(watch_.NextLook(now))), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<InferStream> stream = weak.lock();
    if (reached && stream != nullptr) stream->LookAfterReader();
  });
}

void InferStream::LookAfterReader() {
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

void InferStream::OnStopping() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.has_value()) return;
  }
  End(absl::UnavailableError("the server is stopping"));
}

void InferStream::Cancel() {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<StreamedRequest>& request : in_work_) request->Cancel();
}

void InferStream::End(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_.has_value() || ended_->ok()) ended_ = status;
  }
  Advance();
}

}  // namespace longshort
