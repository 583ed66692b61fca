#include "server/handlers/generate.h"

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/handlers/completion_translator.h"
#include "server/handlers/fan_out.h"
#include "server/handlers/generation_plan.h"
#include "server/handlers/session_check.h"
#include "server/handlers/token_charge.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

void Add(const GenerationSummary& summary, Usage& usage) {
  usage.prompt_tokens += summary.prompt_tokens;
  usage.generated_tokens += summary.generated_tokens;
  usage.cached_tokens += summary.reused_tokens;
}

// Held by the listener of each completion.
class CompletionsInWork final : public std::enable_shared_from_this<CompletionsInWork> {
 public:
  CompletionsInWork(CallRecord& record, std::shared_ptr<const ServedLanguageModel> model,
                    std::function<void(absl::StatusOr<GenerateResult>)> done)
      : record_(record), model_(std::move(model)), done_(std::move(done)) {}

  void Submit(GenerationPlan plan) {
    const auto count = static_cast<int64_t>(plan.requests.size());
    result_.completions.resize(plan.requests.size());
    result_.seed = plan.seed;
    result_.model = record_.answering_model();
    result_.tokenizer = model_->tokenizer;
    summaries_.resize(plan.requests.size());
    fan_out_.emplace(count + 1, record_.engine_context().cancelled);
    const Submission submission = SubmitAll(count, *fan_out_, [&](const CallPart& part) {
      auto listener = std::make_shared<Listener>(shared_from_this(), static_cast<int32_t>(part.index), plan);
      GenerationRequest& one = plan.requests[part.index];
      one.context.part = part;
      const auto prompt_tokens = static_cast<int64_t>(one.prompt.size());
      const absl::Status status = model_->engine->Generate(std::move(one), std::move(listener));
      if (status.ok()) record_.ChargeTokens(prompt_tokens);
      return status;
    });
    if (submission.ended) End();
  }

 private:
  // Builds one completion. Completions are told apart from each other, perhaps by several threads; each writes to
  // places of its own.
  class Listener final : public GenerationListener {
   public:
    Listener(std::shared_ptr<CompletionsInWork> work, int32_t index, const GenerationPlan& plan)
        : work_(std::move(work)), index_(index), translator_(index, plan), charge_(work_->record_) {
      for (CompletionDelta& delta : translator_.Echo(plan.echo)) Append(std::move(delta));
    }
    void OnPromptScored(std::vector<GeneratedToken> tokens) override {
      for (CompletionDelta& delta : translator_.PromptTokens(std::move(tokens))) Append(std::move(delta));
    }
    void OnDelta(GenerationDelta delta) override {
      charge_.Add(static_cast<int64_t>(delta.tokens.size()));
      Append(translator_.Delta(std::move(delta)));
    }
    void OnFinished(const absl::Status& status, const GenerationSummary& summary) override {
      charge_.Settle(summary.generated_tokens);
      Append(translator_.Rest());
      CompletionEnd end = translator_.End(summary);
      completion().finish_reason = end.finish_reason;
      completion().stop = std::move(end.stop);
      completion().timings = end.timings;
      work_->CompletionEnded(index_, status, summary);
    }

   private:
    Completion& completion() { return work_->result_.completions[index_]; }

    void Append(CompletionDelta delta) {
      completion().text += delta.text;
      completion().raw += delta.raw;
      completion().tokens.insert(completion().tokens.end(), std::make_move_iterator(delta.tokens.begin()),
                                 std::make_move_iterator(delta.tokens.end()));
    }

    const std::shared_ptr<CompletionsInWork> work_;
    const int32_t index_;
    CompletionTranslator translator_;
    TokenCharge charge_;
  };

  void CompletionEnded(int32_t index, const absl::Status& status, const GenerationSummary& summary) {
    summaries_[index] = {summary, status.ok()};
    if (fan_out_->Finished(status)) End();
  }

  void End() {
    for (size_t i = 0; i < summaries_.size(); ++i) {
      const auto& [summary, complete] = summaries_[i];
      record_.AddWork(static_cast<int64_t>(i), summary, complete);
      Add(summary, result_.usage);
      if (summary.session_tokens > 0) result_.session_tokens = summary.session_tokens;
    }
    model_ = nullptr;
    const auto done = std::exchange(done_, nullptr);  // it holds the call, whose end may not wait for this one's
    if (const absl::Status status = fan_out_->status(); !status.ok()) return done(status);
    done(std::move(result_));
  }

  CallRecord& record_;
  std::shared_ptr<const ServedLanguageModel> model_;
  std::function<void(absl::StatusOr<GenerateResult>)> done_;
  std::optional<FanOut> fan_out_;
  GenerateResult result_;
  std::vector<std::pair<GenerationSummary, bool>> summaries_;  // and whether it has ended as it should
};

}  // namespace

absl::Status Generate(CallRecord& record, const GenerateCall& call,
                      std::function<void(absl::StatusOr<GenerateResult>)> done) {
  const RequestLimits& limits = record.environment().limits;
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedLanguageModel> model, record.FindLanguageModel(call.model));
  record.CountIn(model->statistics, kGenerationOperation);
  LS_ASSIGN_OR_RETURN(GenerationPlan plan,
                      PlanGeneration(call, *model, limits, record.names(), record.engine_context()));
  LS_RETURN_IF_ERROR(CheckFitsOneAnswer(plan, limits, record.names()));
  TraceGeneration(record, call, plan);
  for (GenerationRequest& one : plan.requests) LS_RETURN_IF_ERROR(TakeSession(record, &one.session));
  std::make_shared<CompletionsInWork>(record, std::move(model), std::move(done))->Submit(std::move(plan));
  return absl::OkStatus();
}

}  // namespace longshort
