// Recorded calls as OpenTelemetry's messages, in the bytes that they are on the wire.
//
// Attributes follow OpenTelemetry's semantic conventions: those of RPC as of version 1.45.0, where they are stable, and
// of generative AI, which are in development; `longshort.` begins our own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opentelemetry/proto/resource/v1/resource.pb.h"
#include "server/monitoring/call_trace.h"
#include "server/options/tracing_options.h"

namespace longshort {

// Which process this is: what the options say, and of what they do not, the service's name, version and an instance id
// that is drawn.
opentelemetry::proto::resource::v1::Resource ResourceOf(const TracingOptions& options);

// Thread: one at a time.
class SpanEncoder final {
 public:
  explicit SpanEncoder(const opentelemetry::proto::resource::v1::Resource& resource);

  // An ExportTraceServiceRequest with the spans of these calls. `wall_clock`: what is added to times of MonotonicNow.
  std::string Encode(const std::vector<std::unique_ptr<CallTrace>>& calls, absl::Duration wall_clock);

 private:
  void Add(const CallTrace& call);
  // The span that was written to span_.
  void AddSpan();
  void WriteCall(const CallTrace& call);
  void WriteStage(const StageSpan& stage, const CallTrace& call);
  // What all spans of a call have.
  void WriteIds(const CallTrace& call, const std::string& id, const std::string& parent, bool parent_is_remote);
  void WriteTimes(absl::Time begin, absl::Time end);

  // Of the messages around the spans what is the same in all requests.
  std::string resource_fields_;
  std::string scope_fields_;
  // Of the request that is made.
  absl::Duration wall_clock_;
  std::string spans_;
  std::string span_;
  std::string trace_id_;
  std::string call_id_;
};

}  // namespace longshort
