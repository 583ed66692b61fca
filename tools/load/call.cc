#include "tools/load/call.h"

#include <utility>
#include <variant>

namespace longshort::load {
namespace {

class StreamCall final : public Call, private grpc::ClientReadReactor<v1::GenerateStreamResponse> {
 public:
  StreamCall(const RunClock& clock, v1::Inference::Stub& stub, const Workload& workload, v1::GenerateRequest request,
             absl::Duration planned, OnEnd on_end)
      : Call(clock, workload, planned, std::move(on_end)), stub_(stub), request_(std::move(request)) {}

  void Start() override {
    NoteStart();
    stub_.async()->GenerateStream(&context(), &request_, this);
    StartRead(&message_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (message_.has_delta() && message_.delta().token_count() > 0) NoteTokens(message_.delta().token_count());
    StartRead(&message_);
  }
  void OnDone(const grpc::Status& status) override { End(status); }

  v1::Inference::Stub& stub_;
  const v1::GenerateRequest request_;
  v1::GenerateStreamResponse message_;
};

using OnStatus = std::function<void(grpc::Status)>;

void Ask(const Stubs& stubs, grpc::ClientContext& context, const v1::ScoreTextRequest& request,
         v1::ScoreTextResponse& response, OnStatus on_status) {
  stubs.longshort->async()->ScoreText(&context, &request, &response, std::move(on_status));
}
void Ask(const Stubs& stubs, grpc::ClientContext& context, const v1::ClassifyImageRequest& request,
         v1::ClassifyImageResponse& response, OnStatus on_status) {
  stubs.longshort->async()->ClassifyImage(&context, &request, &response, std::move(on_status));
}
void Ask(const Stubs& stubs, grpc::ClientContext& context, const inference::ModelInferRequest& request,
         inference::ModelInferResponse& response, OnStatus on_status) {
  stubs.open_inference->async()->ModelInfer(&context, &request, &response, std::move(on_status));
}

template <typename Question, typename Answer>
class UnaryCall final : public Call {
 public:
  UnaryCall(const RunClock& clock, const Stubs& stubs, const Workload& workload, Question request,
            absl::Duration planned, OnEnd on_end)
      : Call(clock, workload, planned, std::move(on_end)), stubs_(stubs), request_(std::move(request)) {}

  void Start() override {
    NoteStart();
    Ask(stubs_, context(), request_, response_, [this](const grpc::Status& status) { End(status); });
  }

 private:
  const Stubs& stubs_;
  const Question request_;
  Answer response_;
};

}  // namespace

Call::Call(const RunClock& clock, const Workload& workload, absl::Duration planned, OnEnd on_end)
    : clock_(clock), deadline_(workload.deadline), on_end_(std::move(on_end)) {
  outcome_.planned = planned;
  if (!workload.authorization.empty()) context_.AddMetadata("authorization", workload.authorization);
}

void Call::NoteStart() {
  outcome_.sent = clock_.Now();
  if (deadline_ != absl::InfiniteDuration()) context_.set_deadline(absl::ToChronoTime(absl::Now() + deadline_));
}

void Call::End(const grpc::Status& status) {
  outcome_.ended = clock_.Now();
  outcome_.code = status.error_code();
  outcome_.error = status.error_message();
  const OnEnd on_end = std::move(on_end_);  // a local, because the callback may destroy this call
  on_end(*this);
}

std::unique_ptr<Call> MakeCall(const RunClock& clock, const Stubs& stubs, const Workload& workload, Request request,
                               absl::Duration planned, Call::OnEnd on_end) {
  if (auto* generate = std::get_if<v1::GenerateRequest>(&request); generate != nullptr) {
    return std::make_unique<StreamCall>(clock, *stubs.longshort, workload, std::move(*generate), planned,
                                        std::move(on_end));
  }
  if (auto* score = std::get_if<v1::ScoreTextRequest>(&request); score != nullptr) {
    return std::make_unique<UnaryCall<v1::ScoreTextRequest, v1::ScoreTextResponse>>(
        clock, stubs, workload, std::move(*score), planned, std::move(on_end));
  }
  if (auto* infer = std::get_if<inference::ModelInferRequest>(&request); infer != nullptr) {
    return std::make_unique<UnaryCall<inference::ModelInferRequest, inference::ModelInferResponse>>(
        clock, stubs, workload, std::move(*infer), planned, std::move(on_end));
  }
  return std::make_unique<UnaryCall<v1::ClassifyImageRequest, v1::ClassifyImageResponse>>(
      clock, stubs, workload, std::get<v1::ClassifyImageRequest>(std::move(request)), planned, std::move(on_end));
}

}  // namespace longshort::load
