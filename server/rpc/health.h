// grpc.health.v1: how the server and its models are. Answered while the server stops, too, which waits for none of it.
#pragma once

#include <cstdint>
#include <vector>

#include "server/rpc/health_board.h"
#include "server/rpc/held_streams.h"
#include "server/rpc/rpc.h"

namespace longshort {

// What calls about health share.
struct Health {
  // Watches are silent by their nature: so many may be, of each connection and in all.
  static constexpr int64_t kMostWatchesOfConnection = 100, kMostWatches = 4096;

  HealthBoard board;
  HeldStreams watches{kMostWatchesOfConnection, kMostWatches};
};

// `health` must outlive the rows.
std::vector<Rpc> HealthRpcs(Health& health);

}  // namespace longshort
