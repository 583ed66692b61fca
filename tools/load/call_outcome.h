// The outcome of one call. All times count from the run's start on a monotonic clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/support/status_code_enum.h"

namespace longshort::load {

// The arrival of a message with tokens.
struct TokenArrival {
  absl::Duration at;
  int64_t tokens = 0;  // at least 1; more if the client or the server was busy
};

struct CallOutcome {
  // When the call was due: the planned arrival (open loop), or the time when its caller became free (closed loop).
  absl::Duration planned;
  // When the call was passed to gRPC. Later than `planned` if the client itself was late.
  absl::Duration sent;
  absl::Duration ended;
  std::vector<TokenArrival> arrivals;  // of a streaming call, in order of time
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string error;  // the status message; empty if the code is OK
  // This program cancelled the call because the run was over.
  bool cut_off = false;

  int64_t tokens() const {
    int64_t sum = 0;
    for (const TokenArrival& arrival : arrivals) sum += arrival.tokens;
    return sum;
  }
};

}  // namespace longshort::load
