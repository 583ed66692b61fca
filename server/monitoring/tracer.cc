#include "server/monitoring/tracer.h"

#include <utility>

#include "base/random_number.h"

namespace longshort {
namespace {

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

Tracer::Tracer(const Options& options, TraceQueue& queue, ServerMetrics& metrics)
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

}  // namespace longshort
