// The gRPC calls that services have begun. gRPC has more in memory: those whose first message has not arrived.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/hash/hash.h"

namespace longshort::server {

// Counts of calls by connection. Connections that share a counter count for each other.
//
// Thread-safe.
class BegunCalls final {
 public:
  using Counter = std::atomic<int32_t>;

  // The counter of the connection with this peer.
  Counter& Of(std::string_view peer) { return counters_[absl::Hash<std::string_view>()(peer) % counters_.size()]; }

  int64_t total() const {
    int64_t total = 0;
    for (const Counter& counter : counters_) total += counter;
    return total;
  }

 private:
  std::array<Counter, 4096> counters_ = {};
};

}  // namespace longshort::server
