// Recorded calls as OpenTelemetry's messages.
//
// Attributes follow OpenTelemetry's semantic conventions: those of RPC as of version 1.45.0, where they are stable, and
// of generative AI, which are in development; `longshort.` begins our own.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb.h"
#include "server/options/tracing_options.h"
#include "server/tracing/call_trace.h"

namespace longshort {

// Which process this is: what the options say, and of what they do not, the service's name, version and an instance id
// that is drawn.
opentelemetry::proto::resource::v1::Resource ResourceOf(const TracingOptions& options);

// Adds the spans of these calls. `wall_clock`: what is added to times of MonotonicNow.
void AddSpans(const std::vector<std::unique_ptr<CallTrace>>& calls,
              const opentelemetry::proto::resource::v1::Resource& resource, absl::Duration wall_clock,
              opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest& request);

}  // namespace longshort
