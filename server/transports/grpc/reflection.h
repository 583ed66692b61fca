// grpc.reflection.v1 and v1alpha: the list of services, and the files that describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/call/rpc.h"
#include "server/transports/grpc/stream_limiter.h"

namespace longshort::server {

// The state that both versions share.
struct Reflection {
  // Limits of open streams, for each connection and in total, and of the time that a stream may be idle. Clients ask
  // for what they need at once.
  static constexpr int64_t kMaxOfConnection = 16, kMax = 256;
  static constexpr absl::Duration kLongestSilence = absl::Seconds(5);

  std::vector<std::string> services;  // in full
  StreamLimiter streams{"reflection streams", kMaxOfConnection, kMax};
};

// `reflection` must outlive the rows.
std::vector<Rpc> ReflectionRpcs(Reflection& reflection);

}  // namespace longshort::server
