#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/handlers/completion_translator.h"
#include "server/handlers/fan_out.h"
#include "server/handlers/generate.h"
#include "server/handlers/generation_plan.h"
#include "server/handlers/session_check.h"
#include "server/handlers/token_charge.h"
#include "server/handlers/traced_request.h"

namespace longshort {
namespace {

// What the completions of one stream share. Held by their listeners, and so as long as the engine works for the stream.
class StreamWork {
 public:
  StreamWork(CallRecord& record, std::shared_ptr<const ServedLanguageModel> model, std::shared_ptr<GenerationSink> sink,
             int64_t completions)
      : record_(record),
        model_(std::move(model)),
        sink_(std::move(sink)),
        fan_out_(completions + 1, record.engine_context().cancelled) {}

  GenerationSink& sink() { return *sink_; }
  const CallRecord& record() const { return record_; }
  FanOut& fan_out() { return fan_out_; }

  void AddSummary(int32_t index, const GenerationSummary& summary, bool complete) {
    const std::lock_guard lock(mutex_);
    summary_.usage.prompt_tokens += summary.prompt_tokens;
    summary_.usage.generated_tokens += summary.generated_tokens;
    summary_.usage.cached_tokens += summary.reused_tokens;
    // A stream with a session has one completion.
    if (summary.session_tokens > 0) summary_.session_tokens = summary.session_tokens;
    record_.AddWork(index, summary, complete);
  }

  // When every part has ended.
  void End() {
    if (fan_out_.status().ok()) sink_->Push(summary_);
    sink_->Close(fan_out_.status());
  }

 private:
  CallRecord& record_;
  const std::shared_ptr<const ServedLanguageModel> model_;
  const std::shared_ptr<GenerationSink> sink_;
  FanOut fan_out_;
  std::mutex mutex_;
  StreamSummary summary_;
};

class StreamedCompletion final : public GenerationListener {
 public:
  StreamedCompletion(std::shared_ptr<StreamWork> work, int32_t index, const GenerationPlan& plan)
      : work_(std::move(work)), index_(index), translator_(index, plan), charge_(work_->record()) {
    Push(translator_.Echo(plan.echo));
  }

  void OnPromptScored(std::vector<GeneratedToken> tokens) override {
    Push(translator_.PromptTokens(std::move(tokens)));
  }

  void OnDelta(GenerationDelta delta) override {
    charge_.Add(static_cast<int64_t>(delta.tokens.size()));
    work_->sink().Push(translator_.Delta(std::move(delta)));
  }

  void OnFinished(const absl::Status& status, const GenerationSummary& summary) override {
    charge_.Settle(summary.generated_tokens);
    work_->AddSummary(index_, summary, status.ok());
    work_->sink().Push(translator_.Rest());
    if (status.ok()) work_->sink().Push(translator_.End(summary));
    if (work_->fan_out().Finished(status)) work_->End();
  }

 private:
  void Push(std::vector<CompletionDelta> deltas) {
    for (CompletionDelta& delta : deltas) work_->sink().Push(std::move(delta));
  }

  const std::shared_ptr<StreamWork> work_;
  const int32_t index_;
  CompletionTranslator translator_;
  TokenCharge charge_;
};

}  // namespace

absl::Status GenerateStream(CallRecord& record, const GenerateCall& call, std::shared_ptr<GenerationSink> sink) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const ServedLanguageModel> model, record.FindLanguageModel(call.model));
  record.CountIn(model->statistics, kGenerationOperation);
  LS_ASSIGN_OR_RETURN(GenerationPlan plan, PlanGeneration(call, *model, record.environment().limits, record.names(),
                                                          record.engine_context()));
  TraceGeneration(record, call, plan);
  record.trace().Set("gen_ai.request.stream", true);
  for (GenerationRequest& one : plan.requests) LS_RETURN_IF_ERROR(TakeSession(record, &one.session));

  const auto count = static_cast<int64_t>(plan.requests.size());
  sink->Open(static_cast<int32_t>(count),
             {.model = record.answering_model(), .seed = plan.seed, .tokenizer = model->tokenizer});
  const auto work = std::make_shared<StreamWork>(record, model, std::move(sink), count);
  const Submission submission = SubmitAll(count, work->fan_out(), [&](const CallPart& part) {
    auto listener = std::make_shared<StreamedCompletion>(work, static_cast<int32_t>(part.index), plan);
    GenerationRequest& one = plan.requests[part.index];
    one.context.part = part;
    const auto prompt_tokens = static_cast<int64_t>(one.prompt.size());
    const absl::Status status = model->engine->Generate(std::move(one), std::move(listener));
    if (status.ok()) record.ChargeTokens(prompt_tokens);
    return status;
  });
  work->sink().Submitted(submission.taken);
  if (submission.ended) work->End();
  return absl::OkStatus();
}

}  // namespace longshort
