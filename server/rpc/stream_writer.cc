#include "server/rpc/stream_writer.h"

#include <utility>

#include "server/rpc/message_bytes.h"

namespace longshort {

StreamWriter::StreamWriter(const CallEnvironment& environment, const char* rpc, grpc::CallbackServerContext* context)
    : record_(environment, rpc, *context), keepalive_interval_(environment.keepalive_interval) {}

std::shared_ptr<StreamWriter> StreamWriter::Make(const CallEnvironment& environment, const char* rpc,
                                                 grpc::CallbackServerContext* context) {
  auto writer = std::shared_ptr<StreamWriter>(new StreamWriter(environment, rpc, context));
  writer->grpc_reference_ = writer;
  return writer;
}

void StreamWriter::Open(int32_t completions, v1::StreamStart start) {
  {
    const std::lock_guard lock(mutex_);
    events_.emplace(completions);
    events_->PushStart(std::move(start));
    last_write_ = absl::Now();
    SetKeepAlive();
  }
  Advance();
}

void StreamWriter::Push(const std::function<void(StreamEvents&)>& add) {
  {
    const std::lock_guard lock(mutex_);
    if (reader_gone_) return;
    add(*events_);
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
    writing_ = false;
    if (!ok) {
      reader_gone_ = true;
      events_.reset();
    }
  }
  if (!ok) record_.Cancel();
  Advance();
}

void StreamWriter::Advance() {
  std::unique_lock lock(mutex_);
  if (writing_ || finished_) return;
  std::optional<v1::GenerateStreamResponse> event;
  if (events_.has_value()) event = events_->Pop();
  if (event.has_value()) {
    absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(*event);
    if (bytes.ok()) {
      on_its_way_ = *std::move(bytes);
      writing_ = true;
      last_write_ = absl::Now();
      lock.unlock();  // writing_ keeps others away
      StartWrite(&on_its_way_);
      return;
    }
    closed_ = bytes.status();
  }
  if (!closed_.has_value()) return;
  finished_ = true;
  alarm_.reset();
  const absl::Status status = *closed_;
  lock.unlock();
  Finish(record_.Finish(status));
}

void StreamWriter::SetKeepAlive() {
  // The timer holds no reference: a stream does not live on for it.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(last_write_ + keepalive_interval_), [weak = weak_from_this()](bool reached) {
    const std::shared_ptr<StreamWriter> writer = weak.lock();
    if (reached && writer != nullptr) writer->OnKeepAlive();
  });
}

void StreamWriter::OnKeepAlive() {
  {
    const std::lock_guard lock(mutex_);
    if (finished_ || reader_gone_) return;
    const absl::Time now = absl::Now();
    if (now - last_write_ >= keepalive_interval_) {
      if (!writing_) events_->PushKeepAlive();
      last_write_ = now;
    }
    SetKeepAlive();
  }
  Advance();
}

}  // namespace longshort
