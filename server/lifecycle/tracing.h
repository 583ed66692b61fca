// What a server that traces its calls has for that.
#pragma once

#include "absl/time/time.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/trace_exporter.h"
#include "server/monitoring/trace_queue.h"
#include "server/monitoring/tracer.h"
#include "server/options/tracing_options.h"

namespace longshort {

class Tracing final {
 public:
  // `metrics` and `log` must outlive this.
  Tracing(const TracingOptions& options, ServerMetrics& metrics, Logger& log)
      : queue_({.most_spans = options.most_spans, .batch_spans = options.batch_spans, .delay = options.delay}),
        tracer_({.ratio = options.ratio,
                 .parent_based = options.parent_based,
                 .continues_traces = options.continues_traces},
                queue_, metrics),
        exporter_(options, queue_, metrics, log) {}

  Tracer& tracer() { return tracer_; }
  // See TraceExporter.
  absl::Status Start() { return exporter_.Start(); }
  void Shutdown(absl::Duration patience) { exporter_.Shutdown(patience); }

 private:
  TraceQueue queue_;
  Tracer tracer_;
  TraceExporter exporter_;
};

}  // namespace longshort
