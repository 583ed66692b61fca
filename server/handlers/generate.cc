#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"
#include "server/handlers/completion_translator.h"
#include "server/handlers/generation_plan.h"
#include "server/handlers/handlers.h"
#include "server/handlers/scatter_gather.h"
#include "server/handlers/sessions.h"

namespace longshort::server {
namespace {

// gen_ai.operation.name: defined by OpenTelemetry.
constexpr char kGenerationOperation[] = "text_completion";

using CompletionParts = ScatterGather<StreamSummary>;

// Charges the generated tokens of one completion to the token rate of the caller's identity, as they are generated.
// Thread: one at a time.
class TokenCharge final {
 public:
  // `record` must outlive this.
  explicit TokenCharge(const CallRecord& record) : record_(record) {}

  void Add(int64_t generated) {
    if (generated <= 0) return;
    charged_ += generated;
    record_.ChargeTokens(generated);
  }
  // Charges the rest of `generated` tokens in total: tokens after a stop string are not in a delta.
  void AddUpTo(int64_t generated) { Add(generated - charged_); }

 private:
  const CallRecord& record_;
  int64_t charged_ = 0;
};

// Pushes the output of one completion to the sink.
class CompletionListener final : public core::GenerationListener {
 public:
  CompletionListener(CallRecord& record, std::shared_ptr<CompletionParts> parts, std::shared_ptr<GenerationSink> sink,
                     int32_t index, const GenerationPlan& plan)
      : record_(record),
        parts_(std::move(parts)),
        sink_(std::move(sink)),
        index_(index),
        translator_(index, plan),
        charge_(record) {
    Push(translator_.Echo(plan.echoes[index / plan.completions]));
  }

  void OnPromptScored(std::vector<core::GeneratedToken> tokens) override {
    Push(translator_.PromptTokens(std::move(tokens)));
  }

  void OnDelta(core::GenerationDelta delta) override {
    charge_.Add(static_cast<int64_t>(delta.tokens.size()));
    sink_->Push(translator_.Delta(std::move(delta)));
  }

  void OnFinished(const absl::Status& status, const core::GenerationSummary& summary) override {
    charge_.AddUpTo(summary.generated_tokens);
    sink_->Push(translator_.Rest());
    if (status.ok()) sink_->Push(translator_.End(summary));
    parts_->PartEnded(status, [&](StreamSummary& all) {
      all.usage.prompt_tokens += summary.prompt_tokens;
      all.usage.generated_tokens += summary.generated_tokens;
      all.usage.cached_tokens += summary.reused_tokens;
      // A call with a session has one completion.
      if (summary.session_tokens > 0) all.session_tokens = summary.session_tokens;
      record_.AddWork(index_, summary, status.ok());
    });
  }

 private:
  void Push(std::vector<CompletionDelta> deltas) {
    for (CompletionDelta& delta : deltas) sink_->Push(std::move(delta));
  }

  CallRecord& record_;
  const std::shared_ptr<CompletionParts> parts_;
  const std::shared_ptr<GenerationSink> sink_;
  const int32_t index_;
  CompletionTranslator translator_;
  TokenCharge charge_;
};

// Collects a whole answer. Each completion writes to its own element, so no lock is needed.
class CollectingSink final : public GenerationSink {
 public:
  explicit CollectingSink(std::function<void(absl::StatusOr<GenerateResult>)> done) : done_(std::move(done)) {}

  void Open(int32_t completions, StreamStart start) override {
    result_.completions.resize(completions);
    result_.model = std::move(start.model);
    result_.seed = start.seed;
    result_.tokenizer = std::move(start.tokenizer);
  }
  void Submitted(bool /*taken*/) override {}
  void Push(StreamEvent event) override {
    if (auto* const delta = std::get_if<CompletionDelta>(&event); delta != nullptr) {
      Completion& completion = result_.completions[delta->index];
      completion.text += delta->text;
      completion.raw += delta->raw;
      completion.tokens.insert(completion.tokens.end(), std::make_move_iterator(delta->tokens.begin()),
                               std::make_move_iterator(delta->tokens.end()));
    } else if (auto* const end = std::get_if<CompletionEnd>(&event); end != nullptr) {
      Completion& completion = result_.completions[end->index];
      completion.finish_reason = end->finish_reason;
      completion.stop = std::move(end->stop);
      completion.timings = std::move(end->timings);
    } else if (const auto* const summary = std::get_if<StreamSummary>(&event); summary != nullptr) {
      result_.usage = summary->usage;
      result_.session_tokens = summary->session_tokens;
    }
  }
  void Close(const absl::Status& status) override {
    const auto done = std::exchange(done_, nullptr);  // local: it holds the call, whose end may destroy this object
    if (!status.ok()) return done(status);
    done(std::move(result_));
  }

 private:
  std::function<void(absl::StatusOr<GenerateResult>)> done_;
  GenerateResult result_;
};

// Completions of one call that the engine has at a time. The others wait here, so that a call may have more than the
// queue.
constexpr int64_t kCompletionWindow = 1024;
constexpr int64_t kWaitingCompletionBytes = 512;  // of a completion that waits, beside its prompt

struct PlannedGeneration {
  std::shared_ptr<const core::ServedLanguageModel> model;
  GenerationPlan plan;
  // By completion, until the engine has it.
  std::vector<std::shared_ptr<CompletionListener>> listeners = {};
  Budget::Share memory = {};  // of completions that wait
};

absl::StatusOr<PlannedGeneration> Plan(CallRecord& record, const GenerateCall& call) {
  LS_ASSIGN_OR_RETURN(std::shared_ptr<const core::ServedLanguageModel> model, record.FindLanguageModel(call.model));
  record.CountIn(model->statistics, kGenerationOperation);
  LS_ASSIGN_OR_RETURN(GenerationPlan plan, PlanGeneration(call, *model, record.environment().limits, record.names(),
                                                          record.engine_context()));
  return PlannedGeneration{.model = std::move(model), .plan = std::move(plan)};
}

// Charges the memory of the completions from `window` on.
absl::Status HoldWaiting(const CallRecord& record, int64_t window, PlannedGeneration& planned) {
  const std::vector<core::GenerationRequest>& requests = planned.plan.requests;
  int64_t bytes = 0;
  for (auto i = static_cast<size_t>(window); i < requests.size(); ++i) {
    bytes += kWaitingCompletionBytes + requests[i].OptionBytes() +
             static_cast<int64_t>(requests[i].prompt.size() * sizeof(int32_t));
  }
  if (bytes == 0) return absl::OkStatus();
  planned.memory = record.MemoryShare();
  return core::Hold(bytes, planned.memory);
}

absl::Status Start(CallRecord& record, PlannedGeneration plans, const std::shared_ptr<GenerationSink>& sink) {
  const auto planned = std::make_shared<PlannedGeneration>(std::move(plans));
  GenerationPlan& plan = planned->plan;
  for (core::GenerationRequest& one : plan.requests) LS_RETURN_IF_ERROR(TakeSession(record, &one.session));
  const auto count = static_cast<int64_t>(plan.requests.size()),
             window = std::min(kCompletionWindow, planned->model->max_items);
  LS_RETURN_IF_ERROR(HoldWaiting(record, window, *planned));
  planned->listeners.resize(plan.requests.size());
  sink->Open(static_cast<int32_t>(count),
             {.model = record.answering_model(), .seed = plan.seed, .tokenizer = planned->model->tokenizer});
  const auto parts = std::make_shared<CompletionParts>(
      record.engine_context().cancelled, StreamSummary(),
      // Holds the model until all completions have ended.
      [model = planned->model](const absl::Status&, StreamSummary&) {},
      [sink](absl::StatusOr<StreamSummary> summary) {
        const absl::Status status = summary.status();
        if (status.ok()) sink->Push(*std::move(summary));
        sink->Close(status);
      });
  const auto submit = [&record, planned, parts, sink, window](const core::PositionInCall& position) {
    const int64_t index = position.index;
    const bool is_alone = index >= window;  // it is submitted again if it is refused
    std::shared_ptr<CompletionListener>& listener = planned->listeners[index];
    if (listener == nullptr) {  // it pushes the echo
      listener = std::make_shared<CompletionListener>(record, parts, sink, static_cast<int32_t>(index), planned->plan);
    }
    core::GenerationRequest& one = planned->plan.requests[index];
    one.context.position_in_call = is_alone ? core::PositionInCall() : position;
    const auto prompt_tokens = static_cast<int64_t>(one.prompt.size());
    const absl::Status status =
        planned->model->engine->Generate(is_alone ? core::GenerationRequest(one) : std::move(one), listener);
    if (!status.ok()) return status;
    listener = nullptr;
    if (is_alone) one = core::GenerationRequest();
    record.ChargeTokens(prompt_tokens);
    return status;
  };
  const bool taken = parts->SubmitInTurn(
      count, window, submit, [&record](absl::AnyInvocable<void()> task) { record.RunInPool(std::move(task)); });
  sink->Submitted(taken);
  return absl::OkStatus();
}

// Adds the call's parameters to its trace, but never texts, stop strings or sessions.
void TraceGeneration(CallRecord& record, const GenerateCall& call, const GenerationPlan& plan) {
  TracedCall& trace = record.trace();
  if (!trace.recorded()) return;
  const core::GenerationRequest& request = plan.requests.front();
  const core::SamplingOptions& sampling = request.sampling;
  trace.Set("gen_ai.request.max_tokens", request.max_tokens);
  trace.Set("gen_ai.request.temperature", sampling.temperature);
  trace.Set("gen_ai.request.top_p", sampling.top_p);
  if (sampling.top_k > 0) trace.Set("gen_ai.request.top_k", static_cast<double>(sampling.top_k));
  if (sampling.frequency_penalty != 0) trace.Set("gen_ai.request.frequency_penalty", sampling.frequency_penalty);
  if (sampling.presence_penalty != 0) trace.Set("gen_ai.request.presence_penalty", sampling.presence_penalty);
  if (call.seed.has_value()) trace.Set("gen_ai.request.seed", static_cast<int64_t>(*call.seed));
  if (plan.completions > 1) trace.Set("gen_ai.request.choice.count", plan.completions);
}

}  // namespace

absl::Status Generate(CallRecord& record, const GenerateCall& call,
                      std::function<void(absl::StatusOr<GenerateResult>)> done) {
  LS_ASSIGN_OR_RETURN(PlannedGeneration planned, Plan(record, call));
  LS_RETURN_IF_ERROR(CheckFitsOneAnswer(planned.plan, record.environment().limits, record.names()));
  LS_RETURN_IF_ERROR(record.answers().Hold(planned.plan.AnswerBytes()));
  // Nothing reaches the client before the end.
  for (core::GenerationRequest& one : planned.plan.requests) {
    if (one.session.has_value()) one.session->keep_partial = false;
  }
  TraceGeneration(record, call, planned.plan);
  return Start(record, std::move(planned), std::make_shared<CollectingSink>(std::move(done)));
}

absl::Status GenerateStream(CallRecord& record, const GenerateCall& call, const std::shared_ptr<GenerationSink>& sink) {
  LS_ASSIGN_OR_RETURN(PlannedGeneration planned, Plan(record, call));
  TraceGeneration(record, call, planned.plan);
  record.trace().Set("gen_ai.request.stream", true);
  return Start(record, std::move(planned), sink);
}

}  // namespace longshort::server
