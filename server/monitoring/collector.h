// The connection to a collector of traces, and what its answers mean.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "server/options/tracing_options.h"

namespace longshort {

// Connects when it is first asked, and again whenever the connection is lost.
std::shared_ptr<grpc::Channel> ConnectToCollector(const TracingOptions& options);

// Whether a call that ended like this is worth trying again, and after how long at the least: as OTLP's specification
// has it. Nothing if it is not.
std::optional<absl::Duration> RetryAfter(const grpc::Status& status);

}  // namespace longshort
