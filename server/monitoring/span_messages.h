// Recorded calls as OpenTelemetry's messages, serialized.
//
// Attributes follow OpenTelemetry's semantic conventions: the stable ones of RPC as of version 1.45.0, and those of
// generative AI, which are in development. Own attributes begin with `longshort.`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opentelemetry/proto/resource/v1/resource.pb.h"
#include "server/monitoring/call_trace.h"
#include "server/options/tracing_options.h"

namespace longshort::server {

// The attributes of this process: those of the options, and otherwise the service's name, its version and a random
// instance id.
opentelemetry::proto::resource::v1::Resource ResourceOf(const TracingOptions &options);

// An ExportTraceServiceRequest with the spans of these calls. `wall_clock`: the offset from MonotonicNow to the wall
// clock.
std::string EncodeSpans(const opentelemetry::proto::resource::v1::Resource &resource,
                        const std::vector<std::unique_ptr<CallTrace>> &calls, absl::Duration wall_clock);

}  // namespace longshort::server
