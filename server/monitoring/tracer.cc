#include "server/monitoring/tracer.h"

#include <cmath>
#include <utility>

#include "base/random_number.h"

namespace longshort::server {
namespace {

constexpr uint64_t kNumbers = uint64_t{1} << 56;

SpanId DrawSpanId() {
  for (;;) {
    if (const SpanId id{RandomNumber()}; id.valid()) return id;
  }
}

TraceId DrawTraceId() {
  for (;;) {
    if (const TraceId id{RandomNumber(), RandomNumber()}; id.valid()) return id;
  }
}

}  // namespace

int64_t CallTrace::Bytes() const {
  constexpr int64_t kOfAttribute = 64;  // of the message to the collector
  auto bytes = static_cast<int64_t>(sizeof(CallTrace) + 2 * message.size() + context.state.size());
  bytes += spans() * static_cast<int64_t>(context.state.size());  // every span of the message has it
  for (const Attribute& attribute : attributes) {
    bytes += static_cast<int64_t>(sizeof(Attribute)) + kOfAttribute;
    if (const auto* text = std::get_if<std::string>(&attribute.value)) bytes += 2 * static_cast<int64_t>(text->size());
    if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
      for (const std::string& text : *texts)
        bytes += static_cast<int64_t>(sizeof(text) + 2 * text.size()) + kOfAttribute;
    }
  }
  constexpr int64_t kOfStage = 256;  // as above
  return bytes + static_cast<int64_t>(stages.capacity() * sizeof(StageSpan) + stages.size() * kOfStage);
}

bool TraceQueue::Offer(std::unique_ptr<CallTrace> trace) {
  const int64_t spans = trace->spans();
  absl::StatusOr<Budget::Share> memory = Budget::Take(memory_, trace->Bytes());
  if (!memory.ok()) return false;
  trace->memory = *std::move(memory);
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    if (closed_ || spans_ + spans > max_spans_) return false;
    // Wakes the exporter once for each batch: a wake-up costs as much as answering a short call.
    wake = traces_.empty() || (spans_ < batch_spans_ && spans_ + spans >= batch_spans_);
    spans_ += spans;
    traces_.push_back(std::move(trace));
  }
  if (wake) changed_.NotifyOne();
  return true;
}

std::vector<std::unique_ptr<CallTrace>> TraceQueue::Take() {
  const MutexLock lock(mutex_);
  changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !traces_.empty(); });
  changed_.WaitFor(mutex_, delay_,
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || spans_ >= batch_spans_; });
  std::vector<std::unique_ptr<CallTrace>> batch;
  int64_t taken = 0;
  while (!traces_.empty() && (batch.empty() || taken + traces_.front()->spans() <= batch_spans_)) {
    taken += traces_.front()->spans();
    batch.push_back(std::move(traces_.front()));
    traces_.pop_front();
  }
  spans_ -= taken;
  return batch;
}

void TraceQueue::Close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.NotifyOne();
}

TraceSampler::TraceSampler(double ratio, bool parent_based)
    : parent_based_(parent_based),
      first_sampled_(static_cast<uint64_t>(std::llround((1 - ratio) * static_cast<double>(kNumbers)))) {}

bool TraceSampler::Samples(const TraceId& id, const std::optional<TraceContext>& parent) const {
  if (parent_based_ && parent.has_value()) return parent->sampled;
  return id.low % kNumbers >= first_sampled_;
}

Tracer::Tracer(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics)
    : sampler_(options.ratio, options.parent_based),
      continues_traces_(options.continues_traces),
      queue_(queue),
      metrics_(metrics) {}

TraceContext Tracer::Begin(const std::optional<TraceContext>& parent) const {
  const bool goes_on = continues_traces_ && parent.has_value();
  TraceContext own = goes_on ? *parent : TraceContext{.trace_id = DrawTraceId(), .random = true};
  own.sampled = sampler_.Samples(own.trace_id, goes_on ? parent : std::nullopt);
  own.span_id = DrawSpanId();
  return own;
}

TraceContext Tracer::BeginWithin(const TraceContext& call) {
  TraceContext own = call;
  own.span_id = DrawSpanId();
  return own;
}

void Tracer::End(std::unique_ptr<CallTrace> trace) {
  const int64_t spans = trace->spans();
  if (trace->lost_stages > 0) metrics_.CountDroppedSpans(SpanLoss::kCallLimit, trace->lost_stages);
  if (!queue_.Offer(std::move(trace))) metrics_.CountDroppedSpans(SpanLoss::kQueueFull, spans);
}

}  // namespace longshort::server
