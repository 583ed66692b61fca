#include "server/open_inference_v2/infer_stream.h"

#include <utility>

#include "base/clock.h"
#include "base/status_macros.h"
#include "server/open_inference_v2/names.h"
#include "server/rpc/message_bytes.h"

namespace longshort {

bool InferStream::HasRoom() const {
  return static_cast<int64_t>(in_work_.size()) < call_.environment().limits.stream_documents;
}

absl::Status InferStream::Take(google::protobuf::Message& message) {
  const auto request = std::make_shared<StreamedRequest>(std::shared_ptr<Owner>(call_.shared_from_this(), this),
                                                         call_.record(), ++requests_);
  {
    const std::lock_guard lock(mutex());
    in_work_.insert(request);
    in_order_.push_back(request);
  }
  absl::Status status = request->Plan(std::move(static_cast<inference::ModelInferRequest&>(message)));
  if (status.ok() && request->is_generation()) {
    const std::lock_guard lock(mutex());
    in_order_.pop_back();  // itself: one message is read at a time, and it has not ended
  }
  if (status.ok()) status = request->Submit();
  if (!status.ok()) request->End(status);
  return absl::OkStatus();
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
  if (call_.writing() || std::exchange(scheduled_, true)) return;  // what is written will be followed
  delivery_.Post([this, keep = call_.shared_from_this()] {
    {
      const std::lock_guard lock(call_.mutex());
      scheduled_ = false;
    }
    call_.Advance();
  });
}

std::optional<grpc::ByteBuffer> InferStream::NextAnswer() {
  while (!ready_.empty()) {
    const std::shared_ptr<StreamedRequest> request = std::move(ready_.front());
    ready_.pop_front();
    request->noted = false;
    std::optional<inference::ModelStreamInferResponse> answer;
    if (call_.reader_gone()) {
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
    if (bytes.ok()) return *std::move(bytes);
    call_.NoteEnd(bytes.status());
  }
  return std::nullopt;
}

void InferStream::Cancel(const absl::Status& reason) {
  {
    const std::lock_guard lock(mutex());
    for (const std::shared_ptr<StreamedRequest>& request : in_work_) request->Cancel();
  }
  call_.End(reason);
}

}  // namespace longshort
