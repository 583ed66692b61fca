// The work of ModelStreamInfer: a call whose client sends requests and reads answers. Requests are worked on side by
// side. A generation has an answer for each piece of text, which come between those of others; requests with one answer
// are answered in the order in which they came. What goes wrong with one request is its answer, and the stream goes on.
//
// The stream reads on only while it has few requests in work, and a generation pauses while much of it waits for a slow
// reader, so what a stream holds is bounded whatever its client does. The engines hold requests, which hold the stream,
// until they have been told the end.
//
// Thread-safe: gRPC's threads read and write, the engines' answer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "server/admission/delivery_threads.h"
#include "server/open_inference_v2/streamed_request.h"
#include "server/rpc/call.h"

namespace longshort {

class InferStream final : public CallWork, public StreamedRequest::Owner {
 public:
  explicit InferStream(Call& call) : call_(call), delivery_(call.environment().deliveries.Next()) {}

 private:
  // Of CallWork.
  absl::Status Take(google::protobuf::Message& message) override;
  void Cancel(const absl::Status& reason) override;
  bool HasRoom() const override;
  bool MayBeIdle() const override { return true; }
  std::optional<grpc::ByteBuffer> NextAnswer() override;
  bool HasWork() const override { return !in_work_.empty(); }

  // Of StreamedRequest::Owner.
  std::mutex& mutex() override { return call_.mutex(); }
  void NoteAnswers(const std::shared_ptr<StreamedRequest>& request) override;
  void Advance() override { call_.Advance(); }
  void AdvanceLater() override;

  void Note(const std::shared_ptr<StreamedRequest>& request);

  Call& call_;
  DeliveryThread& delivery_;
  int64_t requests_ = 0;  // so far

  // Call::mutex() guards what follows.
  std::set<std::shared_ptr<StreamedRequest>> in_work_;
  std::deque<std::shared_ptr<StreamedRequest>> in_order_;  // of these, those with one answer, as they came
  std::deque<std::shared_ptr<StreamedRequest>> ready_;     // those that have something to say, by turns
  bool scheduled_ = false;                                 // the delivery thread has not come to it yet
};

}  // namespace longshort
