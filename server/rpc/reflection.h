// grpc.reflection.v1 and v1alpha: which services there are, and the files that describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/rpc/rpc.h"
#include "server/rpc/stream_limiter.h"

namespace longshort::server {

// What both versions share.
struct Reflection {
  // Clients ask at once what they want to know. So many streams may be open, of each connection and in all, and one
  // that says and reads nothing for so long is ended.
  static constexpr int64_t kMaxOfConnection = 16, kMax = 256;
  static constexpr absl::Duration kLongestSilence = absl::Seconds(5);

  std::vector<std::string> services;  // in full
  StreamLimiter streams{kMaxOfConnection, kMax};
};

// `reflection` must outlive the rows.
std::vector<Rpc> ReflectionRpcs(Reflection& reflection);

}  // namespace longshort::server
