// Recorded calls: which calls are recorded, and their traces until they are exported. Times are MonotonicNow's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/mutex.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/trace_context.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

using AttributeValue = std::variant<std::string, int64_t, double, bool, std::vector<std::string>>;

// Keys are literals.
struct Attribute {
  const char* key = nullptr;
  AttributeValue value = {};
};

// One stage of a call: a child span.
struct StageSpan {
  const char* name = nullptr;
  absl::Time begin;
  absl::Time end;
  // The index of the completion, document or image; -1 for all of them.
  int64_t part = -1;
  // Counts with their keys; a null key is unused.
  std::array<std::pair<const char*, int64_t>, 2> counts = {};
};

// A recorded call: its span and the spans of its stages. Plain data, so that recording costs little; the exporter
// assigns the stages' ids.
struct CallTrace {
  // Most stages of a call, which may have any number of parts; a few more may be recorded, because threads check before
  // they add.
  static constexpr int64_t kMaxStages = 256;

  int64_t spans() const { return 1 + static_cast<int64_t>(stages.size()); }
  // In memory, here and as a message to the collector.
  int64_t Bytes() const;

  TraceContext context = {};  // the call's own span
  SpanId parent = {};         // not valid for the first span of a trace
  // Whether the call came from another process, not from within another call of this one.
  bool is_remote = true;
  // The full name, package.Service/Method.
  const char* method = "";
  absl::Time begin;
  absl::Time end;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  std::vector<Attribute> attributes = {};
  std::vector<StageSpan> stages = {};
  int64_t lost_stages = 0;
  // Number of completions, documents or images. A stage names its part only if there are several.
  int64_t parts = 0;
  Budget::Share memory = {};  // Bytes(), once it waits for its export
};

// `parent`: the budget above; null for none.
inline std::shared_ptr<Budget> TraceBudget(int64_t bytes, std::shared_ptr<Budget> parent = nullptr) {
  return std::make_shared<Budget>(bytes, Budget::Names{.holders = "the traces", .unit = "bytes"}, std::move(parent));
}

// The queue of recorded calls for the exporter. A trace is dropped if the queue is full or there is no memory for it;
// callers never wait.
//
// Thread-safe.
class TraceQueue final {
 public:
  // `memory`: of traces, until they have been exported.
  explicit TraceQueue(const TracingOptions& options, std::shared_ptr<Budget> memory = TraceBudget(int64_t{16} << 20))
      : memory_(std::move(memory)),
        max_spans_(options.max_spans),
        batch_spans_(options.batch_spans),
        delay_(options.delay) {}

  // Queues a trace. False if the queue is full or closed, or there is no memory; the trace is then dropped.
  bool Offer(std::unique_ptr<CallTrace> trace);

  // Returns the next batch: waits until a batch is full, the oldest trace has waited for the delay, or the queue is
  // closed. Empty once the queue is closed and empty. Thread: one at a time.
  std::vector<std::unique_ptr<CallTrace>> Take();

  // Accepts no further traces. Take returns the queued ones at once.
  void Close();

  // In all queued traces.
  int64_t spans() const {
    const MutexLock lock(mutex_);
    return spans_;
  }

 private:
  const std::shared_ptr<Budget> memory_;
  const int64_t max_spans_;
  const int64_t batch_spans_;
  const absl::Duration delay_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::unique_ptr<CallTrace>> traces_ ABSL_GUARDED_BY(mutex_);
  int64_t spans_ ABSL_GUARDED_BY(mutex_) = 0;  // in all traces
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// Chooses the traces to record.
class TraceSampler final {
 public:
  // Records a trace that begins here with probability `ratio`, in [0, 1]. `parent_based`: a client's trace is recorded
  // if the client records it; otherwise `ratio` applies to all traces.
  TraceSampler(double ratio, bool parent_based);

  // The decision depends only on the trace id: its last 7 bytes, as a number, must be at least (1 - ratio) * 2^56
  // (OpenTelemetry's consistent probability sampling). So servers with the same ratio record the same traces, and a
  // higher ratio records a superset.
  bool Samples(const TraceId& id, const std::optional<TraceContext>& parent) const;

 private:
  const bool parent_based_;
  const uint64_t first_sampled_;
};

class Tracer final {
 public:
  // Queue and metrics must outlive the tracer.
  Tracer(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics);

  // The span of a call that begins now, a child of `parent` if the client has sent one.
  TraceContext Begin(const std::optional<TraceContext>& parent) const;
  // The span of a call within a call: in the same trace, and recorded if the outer call is.
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
