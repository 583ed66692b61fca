#include "server/rpc/generate.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "longshort/v1/inference.pb.h"
#include "server/requests/answers.h"
#include "server/requests/generate_request.h"
#include "server/rpc/completion_translator.h"
#include "server/rpc/fan_out.h"
#include "server/rpc/unary_call.h"

namespace longshort {
namespace {

void Append(v1::CompletionDelta delta, v1::Completion& completion) {
  completion.mutable_text()->append(delta.text());
  completion.mutable_raw()->append(delta.raw());
  for (v1::TokenLogProbability& token : *delta.mutable_tokens()) completion.add_tokens()->Swap(&token);
}

class GenerateCall final : public UnaryCall {
 public:
  GenerateCall(const CallEnvironment& environment, grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : UnaryCall(environment, "Generate", context, response), limits_(environment.limits) {}

 private:
  // Builds one completion, and holds the call until the engine has told its end. Completions are told apart from each
  // other, perhaps by several threads; each writes to places of its own.
  class Listener final : public GenerationListener {
   public:
    Listener(std::shared_ptr<UnaryCall> keep, GenerateCall& call, int32_t index, const GenerationPlan& plan)
        : keep_(std::move(keep)), call_(call), index_(index), translator_(index, *call.model_, plan) {
      for (v1::CompletionDelta& delta : translator_.Echo(plan.echo)) Append(std::move(delta), completion());
    }
    void OnPromptScored(std::vector<GeneratedToken> tokens) override {
      for (v1::CompletionDelta& delta : translator_.PromptTokens(tokens)) Append(std::move(delta), completion());
    }
    void OnDelta(GenerationDelta delta) override { Append(translator_.Delta(delta), completion()); }
    void OnFinished(const absl::Status& status, const GenerationSummary& summary) override {
      Append(translator_.Rest(), completion());
      const v1::CompletionEnd end = translator_.End(summary);
      completion().set_finish_reason(end.finish_reason());
      completion().set_stop(end.stop());
      *completion().mutable_timings() = end.timings();
      call_.CompletionEnded(index_, status, summary);
    }

   private:
    v1::Completion& completion() { return *call_.answer_.mutable_completions(index_); }

    const std::shared_ptr<UnaryCall> keep_;
    GenerateCall& call_;
    const int32_t index_;
    CompletionTranslator translator_;
  };

  absl::Status Run(const grpc::ByteBuffer& bytes) override {
    LS_ASSIGN_OR_RETURN(const v1::GenerateRequest request, ParseMessage<v1::GenerateRequest>(bytes));
    LS_ASSIGN_OR_RETURN(model_, record().FindLanguageModel(request.model()));
    LS_ASSIGN_OR_RETURN(GenerationPlan plan, ReadGenerateRequest(request, *model_, limits_, record().engine_context()));
    LS_RETURN_IF_ERROR(CheckFitsOneAnswer(plan, limits_));

    const auto count = static_cast<int32_t>(plan.requests.size());
    for (int32_t i = 0; i < count; ++i) answer_.add_completions()->set_index(i);
    answer_.set_seed(plan.seed);
    *answer_.mutable_model() = record().answering_model();
    summaries_.resize(plan.requests.size());
    fan_out_.emplace(count + 1, record().engine_context().cancelled);
    const bool ended = SubmitAll(count, *fan_out_, [&](const CallPart& part) {
      auto listener = std::make_shared<Listener>(self(), *this, static_cast<int32_t>(part.index), plan);
      GenerationRequest& one = plan.requests[part.index];
      one.context.part = part;
      return model_->engine->Generate(std::move(one), std::move(listener));
    });
    if (ended) End();
    return absl::OkStatus();
  }

  void CompletionEnded(int32_t index, const absl::Status& status, const GenerationSummary& summary) {
    summaries_[index] = summary;
    if (fan_out_->Finished(status)) End();
  }

  void End() {
    for (const GenerationSummary& summary : summaries_) {
      record().AddWork(summary.prompt_tokens, summary.generated_tokens, summary.timings);
      v1::Usage& usage = *answer_.mutable_usage();
      usage.set_prompt_tokens(usage.prompt_tokens() + summary.prompt_tokens);
      usage.set_generated_tokens(usage.generated_tokens() + summary.generated_tokens);
      usage.set_cached_tokens(usage.cached_tokens() + summary.reused_tokens);
      if (summary.session_tokens > 0) answer_.set_session_tokens(summary.session_tokens);
    }
    if (const absl::Status status = fan_out_->status(); !status.ok()) return FinishWithError(status);
    model_ = nullptr;
    FinishWith(std::exchange(answer_, {}));
  }

  const RequestLimits& limits_;
  std::shared_ptr<const ServedLanguageModel> model_;
  std::optional<FanOut> fan_out_;
  v1::GenerateResponse answer_;
  std::vector<GenerationSummary> summaries_;
};

}  // namespace

grpc::ServerUnaryReactor* Generate(const CallEnvironment& environment, grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  return UnaryCall::Start<GenerateCall>(environment, context, request, response);
}

}  // namespace longshort
