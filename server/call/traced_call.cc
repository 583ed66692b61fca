#include "server/call/traced_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/clock.h"

namespace longshort::server {
namespace {

constexpr size_t kUsualAttributes = 16;
constexpr size_t kUsualStages = 6;

constexpr char kPromptTokens[] = "longshort.prompt_tokens";
constexpr char kSteps[] = "longshort.steps";

// The host and the port of "host:port", "[ipv6]:port" or "host".
void SetAuthority(const std::string& authority, TracedCall& call) {
  if (authority.empty()) return;
  const size_t colon = authority.rfind(':');
  int64_t port = 0;
  const bool has_port = colon != std::string::npos && absl::SimpleAtoi(authority.substr(colon + 1), &port);
  std::string host = has_port ? authority.substr(0, colon) : authority;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  call.Set("server.address", std::move(host));
  if (has_port) call.Set("server.port", port);
}

}  // namespace

TracedCall::TracedCall(Tracer* tracer, const CallNames& names, TraceOrigin origin, absl::Time arrived)
    : tracer_(names.observes() ? nullptr : tracer), context_(std::move(origin.parent)) {
  if (tracer_ == nullptr) return;
  const SpanId parent = context_.has_value() ? context_->span_id : SpanId();
  const std::optional<TraceContext> own = tracer_->Begin(context_);
  const bool goes_on = context_.has_value() && own->trace_id == context_->trace_id;
  context_ = own;
  if (!context_->sampled) return;
  Start(names, arrived);
  if (goes_on) trace_->parent = parent;
  SetAuthority(origin.authority, *this);
}

TracedCall::TracedCall(const TracedCall& call, const CallNames& names, absl::Time arrived)
    : tracer_(call.tracer_), context_(call.context_) {
  if (tracer_ == nullptr) return;
  context_ = Tracer::BeginWithin(*call.context_);
  if (!context_->sampled) return;
  Start(names, arrived);
  trace_->parent = call.context_->span_id;
  trace_->is_remote = false;
}

void TracedCall::Start(const CallNames& names, absl::Time arrived) {
  trace_ = std::make_unique<CallTrace>();
  trace_->context = *context_;
  trace_->method = names.method();
  trace_->begin = arrived;
  trace_->attributes.reserve(kUsualAttributes);
  trace_->stages.reserve(kUsualStages);
}

void TracedCall::AppendTo(LogFields& fields) const {
  if (!context_.has_value()) return;
  fields.emplace_back("trace_id", context_->trace_id.ToHex());
  fields.emplace_back("span_id", context_->span_id.ToHex());
}

void TracedCall::Set(const char* key, AttributeValue value) {
  if (trace_ != nullptr) trace_->attributes.push_back({key, std::move(value)});
}

void TracedCall::AddStage(const StageSpan& stage) {
  worked_ = std::max(worked_, stage.end);
  if (static_cast<int64_t>(trace_->stages.size()) < CallTrace::kMaxStages) {
    trace_->stages.push_back(stage);
  } else {
    ++trace_->lost_stages;
  }
}

absl::Time TracedCall::AddQueue(int64_t index, absl::Time submitted, absl::Duration preparation, absl::Duration queue,
                                const std::optional<DocumentArrival>& arrival) {
  absl::Time ready = submitted + preparation;
  const absl::Time begun = ready + queue;
  if (arrival.has_value()) {
    AddStage({.name = "preparation", .begin = arrival->read, .end = arrival->ready, .part = index});
    ready = arrival->ready;
  } else {
    submitted_ = std::min(submitted_, submitted);
    if (preparation > absl::ZeroDuration()) {
      AddStage({.name = "preparation", .begin = submitted, .end = ready, .part = index});
    }
  }
  AddStage({.name = "queue", .begin = ready, .end = begun, .part = index});
  return begun;
}

void TracedCall::AddPrefill(int64_t index, const core::RequestTimings& timings) {
  for (const core::PromptPiece& piece : timings.prompt_pieces) {
    AddStage({.name = "prefill",
              .begin = piece.begin,
              .end = piece.end,
              .part = index,
              .counts = {{{kPromptTokens, piece.tokens}, {kSteps, piece.steps}}}});
  }
}

void TracedCall::AddGeneration(int64_t index, const core::GenerationSummary& summary, bool complete) {
  const core::RequestTimings& timings = summary.timings;
  if (trace_ == nullptr || timings.submitted == absl::InfinitePast()) return;
  cached_tokens_ += summary.reused_tokens;
  if (complete) {
    finish_reasons_.emplace_back(index, summary.finish_reason == core::FinishReason::kStopString ? "stop" : "length");
  }
  const absl::Time begun = AddQueue(index, timings.submitted, absl::ZeroDuration(), timings.queue, std::nullopt);
  const absl::Time prefilled = begun + timings.prefill;
  AddPrefill(index, timings);
  if (summary.generated_tokens > 0) {
    AddStage({.name = "decode",
              .begin = prefilled,
              .end = prefilled + timings.decode,
              .part = index,
              .counts = {{{"longshort.generated_tokens", summary.generated_tokens}}}});
  }
}

void TracedCall::AddScore(int64_t index, int64_t cached_tokens, const core::RequestTimings& timings,
                          const std::optional<DocumentArrival>& arrival) {
  if (trace_ == nullptr || timings.submitted == absl::InfinitePast()) return;
  cached_tokens_ += cached_tokens;
  AddQueue(index, timings.submitted, absl::ZeroDuration(), timings.queue, arrival);
  AddPrefill(index, timings);
}

void TracedCall::AddItem(int64_t index, int64_t tokens, const core::ClassificationTimings& timings,
                         const std::optional<DocumentArrival>& arrival) {
  if (trace_ == nullptr || timings.submitted == absl::InfinitePast()) return;
  const absl::Time begun = AddQueue(index, timings.submitted, timings.preparation, timings.queue, arrival);
  StageSpan batch{.name = "batch", .begin = begun, .end = begun + timings.run, .part = index};
  if (tokens > 0) batch.counts[0] = {kPromptTokens, tokens};
  AddStage(batch);
}

void TracedCall::BeginMessage() {
  if (trace_ == nullptr) return;
  if (messages_++ == 0) first_message_ = MonotonicNow();
}

void TracedCall::AddPreparationAndDelivery(absl::Time end) {
  const absl::Time begin = trace_->begin;
  if (submitted_ != absl::InfiniteFuture()) {
    trace_->stages.push_back({.name = "preparation", .begin = begin, .end = std::max(begin, submitted_)});
  }
  if (messages_ > 0) {
    trace_->stages.push_back(
        {.name = "delivery", .begin = first_message_, .end = end, .counts = {{{"longshort.messages", messages_}}}});
  } else if (worked_ != absl::InfinitePast()) {
    trace_->stages.push_back({.name = "delivery", .begin = std::min(worked_, end), .end = end});
  }
}

void TracedCall::End(const Ending& ending) {
  if (trace_ == nullptr) return;
  AddPreparationAndDelivery(ending.time);
  Set("longshort.request.id", ending.id);
  if (!ending.model.name.empty()) {
    Set("gen_ai.request.model", ending.model.name);
    Set("longshort.model.version", ending.model.version);
  }
  if (ending.prompt_tokens > 0) Set("gen_ai.usage.input_tokens", ending.prompt_tokens);
  if (ending.generated_tokens > 0) Set("gen_ai.usage.output_tokens", ending.generated_tokens);
  if (cached_tokens_ > 0) Set("gen_ai.usage.cache_read.input_tokens", cached_tokens_);
  if (!finish_reasons_.empty()) {
    std::sort(finish_reasons_.begin(), finish_reasons_.end());
    std::vector<std::string> reasons;
    reasons.reserve(finish_reasons_.size());
    for (const auto& [index, reason] : finish_reasons_) reasons.emplace_back(reason);
    Set("gen_ai.response.finish_reasons", std::move(reasons));
  }
  trace_->end = ending.time;
  trace_->code = ending.status.code();
  trace_->message = std::string(ending.status.message());
  trace_->parts = ending.parts;
  tracer_->End(std::move(trace_));
}

}  // namespace longshort::server
