// How a client is told of a refusal for want of room.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/schedule/refusal.h"

namespace longshort {

// A google.rpc.Status with RetryInfo, serialized: the value of `grpc-status-details-bin`.
std::string RefusalDetails(const absl::Status& status, const Refusal& refusal);

// The same time in milliseconds, rounded up: the value of `grpc-retry-pushback-ms`, by which gRPC's own retries go.
std::string RetryPushback(const Refusal& refusal);

}  // namespace longshort
