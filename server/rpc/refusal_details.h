// How a client is told of a refusal for want of room.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/schedule/refusal.h"

namespace longshort {

// A google.rpc.Status with RetryInfo, serialized: the value of `grpc-status-details-bin`.
std::string RefusalDetails(const absl::Status& status, const Refusal& refusal);

}  // namespace longshort
