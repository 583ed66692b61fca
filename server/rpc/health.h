// grpc.health.v1: the health of the server and of its models. Health calls are answered during a stop. A stop does not
// wait for them.
#pragma once

#include <cstdint>
#include <vector>

#include "server/rpc/health_board.h"
#include "server/rpc/held_streams.h"
#include "server/rpc/rpc.h"

namespace longshort {

// What calls about health share.
struct Health {
  // Limits of open watches. Watches are idle most of the time, so the limits are high.
  static constexpr int64_t kMostWatchesOfConnection = 100, kMostWatches = 4096;

  HealthBoard board;
  HeldStreams watches{kMostWatchesOfConnection, kMostWatches};
};

// `health` must outlive the rows.
std::vector<Rpc> HealthRpcs(Health& health);

}  // namespace longshort
