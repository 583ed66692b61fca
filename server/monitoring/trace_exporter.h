// Sends recorded calls to a collector, in a thread of its own: a batch at a time, tried again with growing pauses while
// that is worth it. Whatever the collector does, calls do not notice: what cannot be sent fills the queue, and what
// does not fit there is dropped. What happens to spans is counted, and it is logged when exporting begins to fail and
// when it works again.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/monitoring/logger.h"
#include "server/monitoring/server_metrics.h"
#include "server/monitoring/span_messages.h"
#include "server/monitoring/tracer.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

// Connects when it is first asked, and again whenever the connection is lost.
std::shared_ptr<grpc::Channel> ConnectToCollector(const TracingOptions& options);

// Whether a call that ended like this is worth trying again, and after how long at the least: as OTLP's specification
// has it. Nothing if it is not.
std::optional<absl::Duration> RetryAfter(const grpc::Status& status);

class TraceExporter final {
 public:
  // All must outlive the exporter.
  TraceExporter(const TracingOptions& options, TraceQueue& queue, ServerMetrics& metrics, Logger& log);
  // Calls wait in the queue until then. Errors: as Thread::Start.
  absl::Status Start() {
    return thread_.Start("the thread that exports traces", [this] { Run(); });
  }
  // As Shutdown without patience.
  ~TraceExporter();

  // Closes the queue, and sends what is in it, each batch once, until all is sent, one fails, or `patience` is over.
  void Shutdown(absl::Duration patience);

 private:
  using Response = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;
  using Batch = std::vector<std::unique_ptr<CallTrace>>;

  void Run();
  void Export(const Batch& batch);
  // Whether the request was taken, after as many tries as it is worth.
  bool Send(const grpc::ByteBuffer& request, int64_t spans);
  grpc::Status TryOnce(const grpc::ByteBuffer& request, Response* response);
  void NoteSuccess(const Response& response, int64_t spans);
  void NoteFailure(const grpc::Status& status);
  // Returns earlier if the exporter is shut down.
  void SleepUntil(absl::Time time);
  // Whether it is shut down, and nothing is to be tried any more.
  bool given_up();

  const TracingOptions options_;
  TraceQueue& queue_;
  ServerMetrics& metrics_;
  Logger& log_;
  const opentelemetry::proto::resource::v1::Resource resource_;
  const std::unique_ptr<grpc::GenericStub> collector_;

  // Of the thread.
  absl::Duration pause_;                          // before the next try, once one has failed
  absl::Time not_before_ = absl::InfinitePast();  // the next try may not come
  bool failing_ = false;
  bool rejected_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  absl::Time stop_at_ = absl::InfiniteFuture();  // once it is shut down
  bool given_up_ = false;
  bool done_ = false;
  grpc::ClientContext* call_ = nullptr;  // that is on its way

  Thread thread_;  // last: it uses the other members
};

// What a server that traces its calls has for that.
class Tracing final {
 public:
  // `metrics` and `log` must outlive this.
  Tracing(const TracingOptions& options, ServerMetrics& metrics, Logger& log)
      : queue_(options), tracer_(options, queue_, metrics), exporter_(options, queue_, metrics, log) {}

  Tracer& tracer() { return tracer_; }
  // See TraceExporter.
  absl::Status Start() { return exporter_.Start(); }
  void Shutdown(absl::Duration patience) { exporter_.Shutdown(patience); }

 private:
  TraceQueue queue_;
  Tracer tracer_;
  TraceExporter exporter_;
};

}  // namespace longshort::server
