#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/call/call.h"
#include "server/fronts/open_inference/open_inference.h"
#include "server/fronts/open_inference/streamed_request.h"

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
  absl::Status Take() override {
    inference::ModelInferRequest message;
    LS_RETURN_IF_ERROR(call_.Read(message));
    auto note = [this](const std::shared_ptr<StreamedRequest>& has_news)
                    ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { NoteAnswers(has_news); };
    const auto request = std::make_shared<StreamedRequest>(call_.shared_from_this(), ++requests_, std::move(note));
    LS_RETURN_IF_ERROR(request->Hold());
    {
      const MutexLock lock(call_.mutex());
      in_work_.insert(request);
      in_order_.push_back(request);
      if (!call_.is_well()) request->Cancel();  // Cancel came before
    }
    absl::Status status = request->Plan(std::move(message));
    if (status.ok() && request->is_generation()) {
      const MutexLock lock(call_.mutex());
      in_order_.pop_back();  // this request: one message is read at a time, and the request has not ended
    }
    if (status.ok()) status = request->Submit();
    if (!status.ok()) request->End(status);
    return absl::OkStatus();
  }

  void Cancel(const absl::Status& reason) override {
    {
      const MutexLock lock(call_.mutex());
      for (const std::shared_ptr<StreamedRequest>& request : in_work_) request->Cancel();
    }
    call_.End(reason);
  }

  bool HasRoom() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    return static_cast<int64_t>(in_work_.size()) < call_.environment().limits.stream_documents;
  }

  bool MayBeIdle() const override { return true; }
  std::optional<CallAnswer> NextAnswer() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
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
      absl::StatusOr<CallAnswer> encoded = call_.Encode(*std::move(answer));
      if (encoded.ok()) return *std::move(encoded);
      call_.NoteEnd(encoded.status());
    }
    return std::nullopt;
  }

  bool HasWork() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) { return !in_work_.empty(); }

  // Requests with one answer are noted in the order of the requests.
  void NoteAnswers(const std::shared_ptr<StreamedRequest>& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    for (; !in_order_.empty() && in_order_.front()->ended(); in_order_.pop_front()) Note(in_order_.front());
    for (const std::shared_ptr<StreamedRequest>& waiting : in_order_) {
      if (waiting == request) return;
    }
    Note(request);
  }

  void Note(const std::shared_ptr<StreamedRequest>& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(call_.mutex()) {
    if (!std::exchange(request->noted, true)) ready_.push_back(request);
  }

  Call& call_;
  int64_t requests_ = 0;  // number of requests read

  std::set<std::shared_ptr<StreamedRequest>> in_work_ ABSL_GUARDED_BY(call_.mutex());
  // Those of in_work_ with one answer, in order.
  std::deque<std::shared_ptr<StreamedRequest>> in_order_ ABSL_GUARDED_BY(call_.mutex());
  // Those with answers, in round-robin order.
  std::deque<std::shared_ptr<StreamedRequest>> ready_ ABSL_GUARDED_BY(call_.mutex());
};

}  // namespace

std::unique_ptr<CallWork> MakeInferStream(Call& call) { return std::make_unique<InferStream>(call); }

}  // namespace longshort::server
