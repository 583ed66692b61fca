// What became of one call. All times count from the run's start, on a clock that only moves forward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/support/status_code_enum.h"

namespace longshort::load {

// A message that brought tokens.
struct TokenArrival {
  absl::Duration at;
  int64_t tokens = 0;  // several if the client or the server was busy; at least 1
};

struct CallOutcome {
  // When the call was due: by the arrival process (open loop), or when its caller was free (closed loop).
  absl::Duration planned;
  // When it was given to gRPC; later than `planned` if the client itself was late.
  absl::Duration sent;
  absl::Duration ended;
  std::vector<TokenArrival> arrivals;  // of streams, rising
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string error;  // the server's message; empty of answers
  // Still running when the run was over, and therefore cancelled by this program.
  bool cut_off = false;

  int64_t tokens() const {
    int64_t sum = 0;
    for (const TokenArrival& arrival : arrivals) sum += arrival.tokens;
    return sum;
  }
};

}  // namespace longshort::load
