// Decides which calls are recorded, and takes what was recorded of them.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "server/monitoring/call_trace.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/trace_context.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

// Recorded calls on their way to the exporter: what comes while there is no room is dropped, and nobody waits.
//
// Thread-safe.
class TraceQueue final {
 public:
  explicit TraceQueue(const TracingOptions& options)
      : max_spans_(options.max_spans), batch_spans_(options.batch_spans), delay_(options.delay) {}

  // False, and then the trace is gone, if there is no room or the queue is closed. Takes no longer than a push.
  bool Offer(std::unique_ptr<CallTrace> trace);

  // The next batch: waits until one is full, or something has waited for the delay, or the queue is closed. Empty once
  // it is closed and nothing is left. Thread: one at a time.
  std::vector<std::unique_ptr<CallTrace>> Take();

  // From now on nothing comes in; what waits can be taken at once.
  void Close();

 private:
  const int64_t max_spans_;
  const int64_t batch_spans_;
  const absl::Duration delay_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<CallTrace>> traces_;
  int64_t spans_ = 0;  // of them
  bool closed_ = false;
};

// Which traces are recorded.
class TraceSampler final {
 public:
  // A trace that begins here is recorded with the probability `ratio`, in [0, 1]. `parent_based`: one that came from
  // elsewhere is recorded if it is there; otherwise all are treated alike.
  TraceSampler(double ratio, bool parent_based);

  // The trace id alone decides, so servers with one ratio decide alike, and one with a higher ratio records what one
  // with a lower does: its last 7 bytes, as a number, against the part of 2^56 that is not recorded (OpenTelemetry's
  // consistent probability sampling).
  bool Samples(const TraceId& id, const std::optional<TraceContext>& parent) const;

 private:
  const bool parent_based_;
  const uint64_t first_sampled_;
};

class Tracer final {
 public:
  // Queue and metrics must outlive the tracer.
  Tracer(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics);

  // The span of a call that begins now, below `parent` if the client has named one.
  TraceContext Begin(const std::optional<TraceContext>& parent) const;
  // That of a call within a call: of the same trace, and recorded if the other is.
  static TraceContext BeginWithin(const TraceContext& call);

  // Hands a recorded call over for export; never waits.
  void End(std::unique_ptr<CallTrace> trace);

 private:
  const TraceSampler sampler_;
  const bool continues_traces_;
  TraceQueue& queue_;
  ServerMetrics& metrics_;
};

}  // namespace longshort::server
