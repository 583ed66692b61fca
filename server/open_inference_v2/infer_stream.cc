#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "server/open_inference_v2/rpcs.h"
#include "server/open_inference_v2/streamed_request.h"
#include "server/rpc/call.h"

namespace longshort::server {
namespace {

// The work of ModelStreamInfer: a call whose client sends requests and reads answers. Requests run concurrently. A
// generation has one answer for each piece of text, interleaved with other answers. Requests with one answer are
// answered in the order of the requests. An error of a request is its answer, and the stream stays open.
//
// The stream reads only while it has few requests in work, and a generation pauses while much of its output waits for a
// slow reader. So the memory of a stream is bounded whatever its client does. The engines hold requests, which hold the
// stream, until they end.
//
// Thread-safe: gRPC's threads read and write, the engines' threads answer.
class InferStream final : public CallWork {
 public:
  explicit InferStream(Call& call) : call_(call) {}

 private:
  // CallWork:
  absl::Status Take(google::protobuf::Message& message) override {
    const auto request = std::make_shared<StreamedRequest>(
        call_.shared_from_this(), ++requests_,
        [this](const std::shared_ptr<StreamedRequest>& has_news) { NoteAnswers(has_news); });
    {
      const std::lock_guard lock(call_.mutex());
      in_work_.insert(request);
      in_order_.push_back(request);
    }
    absl::Status status = request->Plan(std::move(static_cast<inference::ModelInferRequest&>(message)));
    if (status.ok() && request->is_generation()) {
      const std::lock_guard lock(call_.mutex());
      in_order_.pop_back();  // this request: one message is read at a time, and the request has not ended
    }
    if (status.ok()) status = request->Submit();
    if (!status.ok()) request->End(status);
    return absl::OkStatus();
  }

  void Cancel(const absl::Status& reason) override {
    {
      const std::lock_guard lock(call_.mutex());
      for (const std::shared_ptr<StreamedRequest>& request : in_work_) request->Cancel();
    }
    call_.End(reason);
  }

  bool HasRoom() const override {
    return static_cast<int64_t>(in_work_.size()) < call_.environment().limits.stream_documents;
  }

  bool MayBeIdle() const override { return true; }
  std::optional<grpc::ByteBuffer> NextAnswer() override {
    while (!ready_.empty()) {
      const std::shared_ptr<StreamedRequest> request = std::move(ready_.front());
      ready_.pop_front();
      request->noted = false;
      std::optional<inference::ModelStreamInferResponse> answer;
      if (call_.reader_gone()) {
        request->RemoveAnswers();
      } else {
        answer = request->Take();
      }
      if (request->finished()) {
        in_work_.erase(request);
      } else if (answer.has_value()) {
        Note(request);  // it may have more answers, after the other requests' turns
      }
      if (!answer.has_value()) continue;
      absl::StatusOr<grpc::ByteBuffer> bytes = SerializeMessage(*answer);
      if (bytes.ok()) return *std::move(bytes);
      call_.NoteEnd(bytes.status());
    }
    return std::nullopt;
  }

  bool HasWork() const override { return !in_work_.empty(); }

  // Requests with one answer are noted in the order of the requests.
  void NoteAnswers(const std::shared_ptr<StreamedRequest>& request) {
    for (; !in_order_.empty() && in_order_.front()->ended(); in_order_.pop_front()) Note(in_order_.front());
    for (const std::shared_ptr<StreamedRequest>& waiting : in_order_) {
      if (waiting == request) return;
    }
    Note(request);
  }

  void Note(const std::shared_ptr<StreamedRequest>& request) {
    if (!std::exchange(request->noted, true)) ready_.push_back(request);
  }

  Call& call_;
  int64_t requests_ = 0;  // number of requests read

  // Call::mutex() guards what follows.
  std::set<std::shared_ptr<StreamedRequest>> in_work_;
  std::deque<std::shared_ptr<StreamedRequest>> in_order_;  // those of in_work_ with one answer, in order
  std::deque<std::shared_ptr<StreamedRequest>> ready_;     // those with answers, in round-robin order
};

}  // namespace

std::unique_ptr<CallWork> MakeInferStream(Call& call) { return std::make_unique<InferStream>(call); }

}  // namespace longshort::server
