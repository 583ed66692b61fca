#include "server/rpc/score_text.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longshort/v1/inference.pb.h"
#include "models/status_macros.h"
#include "server/requests/answers.h"
#include "server/requests/score_request.h"
#include "server/rpc/fan_out.h"
#include "server/rpc/unary_call.h"

namespace longshort {
namespace {

class ScoreTextCall final : public UnaryCall {
 public:
  ScoreTextCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : UnaryCall(environment, "ScoreText", context, response), limits_(environment.limits) {}

 private:
  // Holds the call until the engine has told the end of one document.
  class Document final : public ScoringListener {
   public:
    Document(std::shared_ptr<UnaryCall> keep, ScoreTextCall& call, size_t index, int64_t token_count)
        : keep_(std::move(keep)), call_(call), index_(index), token_count_(token_count) {}
    void OnFinished(absl::StatusOr<Score> score) override {
      call_.DocumentEnded(index_, token_count_, std::move(score));
    }

   private:
    const std::shared_ptr<UnaryCall> keep_;
    ScoreTextCall& call_;
    const size_t index_;
    const int64_t token_count_;
  };

  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const v1::ScoreTextRequest request, ParseMessage<v1::ScoreTextRequest>(bytes));
    LS_ASSIGN_OR_RETURN(model_, record().FindLanguageModel(request.model()));
    LS_ASSIGN_OR_RETURN(std::vector<ScoringRequest> documents,
                        ReadScoreRequest(request, *model_, limits_, record().engine_context()));

    const auto count = static_cast<int64_t>(documents.size());
    for (int64_t i = 0; i < count; ++i) answer_.add_scores();
    timings_.resize(documents.size());
    fan_out_.emplace(count + 1, record().engine_context().cancelled);
    const bool ended = SubmitAll(count, *fan_out_, [&](int64_t i) {
      const auto tokens = static_cast<int64_t>(documents[i].tokens.size());
      auto listener = std::make_shared<Document>(self(), *this, static_cast<size_t>(i), tokens);
      return model_->engine->Score(std::move(documents[i]), std::move(listener));
    });
    if (ended) End();
    return absl::OkStatus();
  }

  // Each document writes to places of its own, so the listeners need no lock among themselves.
  void DocumentEnded(size_t index, int64_t token_count, absl::StatusOr<Score> score) {
    if (score.ok()) {
      *answer_.mutable_scores(static_cast<int>(index)) = ToMessage(*score, token_count, *model_);
      timings_[index] = score->timings;
    }
    if (fan_out_->Finished(score.status())) End();
  }

  void End() {
    if (const absl::Status status = fan_out_->status(); !status.ok()) return FinishWithError(status);
    for (int i = 0; i < answer_.scores_size(); ++i) {
      record().AddWork(answer_.scores(i).token_count(), 0, timings_[i]);
      answer_.mutable_usage()->set_prompt_tokens(answer_.usage().prompt_tokens() + answer_.scores(i).token_count());
    }
    *answer_.mutable_model() = record().answering_model();
    FinishWith(answer_);
  }

  const RequestLimits& limits_;
  std::shared_ptr<const ServedLanguageModel> model_;
  std::optional<FanOut> fan_out_;
  v1::ScoreTextResponse answer_;
  std::vector<RequestTimings> timings_;
};

}  // namespace

grpc::ServerUnaryReactor* ScoreText(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<ScoreTextCall>(environment, context, request, response);
}

}  // namespace longshort
