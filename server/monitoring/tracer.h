// Decides which calls are recorded, and takes what was recorded of them.
//
// Thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "server/monitoring/call_trace.h"
#include "server/monitoring/sampler.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/trace_context.h"
#include "server/monitoring/trace_queue.h"

namespace longshort {

class Tracer final {
 public:
  struct Options {
    // See Sampler.
    double ratio = 1;
    bool parent_based = true;
    // Whether the trace that a client says its call belongs to is gone on with.
    bool continues_traces = true;
  };

  // Both must outlive the tracer.
  Tracer(const Options& options, TraceQueue& queue, ServerMetrics& metrics);

  // The span of a call that begins now, below `parent` if the client has named one.
  TraceContext Begin(const std::optional<TraceContext>& parent) const;
  // That of a call within a call: of the same trace, and recorded if the other is.
  static TraceContext BeginWithin(const TraceContext& call);

  // Hands a recorded call over for export; never waits.
  void End(std::unique_ptr<CallTrace> trace);

 private:
  const Sampler sampler_;
  const bool continues_traces_;
  TraceQueue& queue_;
  ServerMetrics& metrics_;
};

}  // namespace longshort
