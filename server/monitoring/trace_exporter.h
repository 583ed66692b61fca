// Exports recorded calls to a collector, in its own thread: one batch at a time, retried with growing pauses. A slow
// or failing collector does not delay calls: the queue fills up, and further calls' spans are dropped. Metrics count
// the spans of each outcome. The log reports when exports begin to fail and when they work again.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "opentelemetry/proto/resource/v1/resource.pb.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/otlp_client.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/tracer.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

class TraceExporter final {
 public:
  // All must outlive the exporter.
  TraceExporter(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics, Logger& log);
  // Calls are queued until then. Errors: as Thread::Start.
  absl::Status Start() {
    return thread_.Start("the thread that exports traces", [this] { Run(); });
  }
  // As Shutdown with a `patience` of zero.
  ~TraceExporter();

  // Closes the queue and exports its spans. Tries each batch once, until all are exported, one fails, or `patience` is
  // over. Logs the number of spans that are then lost.
  void Shutdown(absl::Duration patience);

 private:
  using Response = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
  using Batch = std::vector<std::unique_ptr<CallTrace>>;

  void Run();
  void Export(const Batch& batch);
  // Sends the request, with retries. Returns whether the collector accepted it.
  bool Send(const std::string& request, int64_t spans);
  OtlpAnswer TryOnce(const std::string& request);
  // Reads the TLS files, and makes a new client if they have changed. Wrong files change nothing. Errors: there is no
  // client.
  absl::StatusOr<std::shared_ptr<OtlpClient>> ClientForFiles();
  void NoteSuccess(const Response& response, int64_t spans);
  void NoteFailure(const absl::Status& status, bool tries_again);
  // Returns earlier if the exporter is shut down.
  void SleepUntil(absl::Time time);
  // Whether it is shut down and must not try again.
  bool given_up();

  const TracingOptions options_;
  TraceQueue& queue_;
  ServerMetrics& metrics_;
  Logger& log_;
  const opentelemetry::proto::resource::v1::Resource resource_;

  // Used by the thread only.
  absl::Duration pause_;                          // before the next attempt after a failure
  absl::Time not_before_ = absl::InfinitePast();  // earliest time of the next attempt
  bool failing_ = false;
  bool rejected_ = false;
  CollectorPems pems_;       // that the client uses
  std::string wrong_files_;  // the last error of the TLS files that is logged

  Mutex mutex_;
  ConditionVariable changed_;
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // once it is shut down
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;     // spans
  int64_t lost_at_stop_ ABSL_GUARDED_BY(mutex_) = 0;  // spans
  std::shared_ptr<OtlpClient> client_ ABSL_GUARDED_BY(mutex_);

  Thread thread_;  // last: it uses the other members
};

// The queue, the tracer and the exporter of a server with traces.
class Tracing final {
 public:
  // `memory`: of the traces. `metrics` and `log` must outlive this.
  Tracing(const TracingOptions& options, std::shared_ptr<Budget> memory, ServerMetrics& metrics, Logger& log)
      : queue_(options, std::move(memory)),
        tracer_(options, queue_, metrics),
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

// Recorded calls as OpenTelemetry's messages, serialized.
//
// Attributes follow OpenTelemetry's semantic conventions: the stable ones of RPC as of version 1.45.0, and those of
// generative AI, which are in development. Own attributes begin with `longshort.`.

// The attributes of this process: those of the options, and otherwise the service's name, its version and a random
// instance id.
opentelemetry::proto::resource::v1::Resource ResourceOf(const TracingOptions& options);

// An ExportTraceServiceRequest with the spans of these calls. `wall_clock`: the offset from MonotonicNow to the wall
// clock.
std::string EncodeSpans(const opentelemetry::proto::resource::v1::Resource& resource,
                        const std::vector<std::unique_ptr<CallTrace>>& calls, absl::Duration wall_clock);

}  // namespace longshort::server
