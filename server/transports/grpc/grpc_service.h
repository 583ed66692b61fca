// A gRPC service that serves a table of RPCs. Each call is a Call, whatever its RPC.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/hash/hash.h"
#include "server/call/call_environment.h"
#include "server/call/rpc.h"

namespace longshort::server {

// The number of gRPC calls that services have begun, by connection. gRPC has more in memory: those whose first message
// has not arrived. Connections that share a counter count for each other.
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

class GrpcService final : public grpc::Service {
 public:
  // `environment` must outlive the service.
  GrpcService(const CallEnvironment& environment, std::vector<Rpc> rpcs);

  const std::vector<Rpc>& rpcs() const { return rpcs_; }
  BegunCalls& begun_calls() { return begun_; }

 private:
  const std::vector<Rpc> rpcs_;
  BegunCalls begun_;
  std::vector<std::string> paths_;  // gRPC refers to them
};

}  // namespace longshort::server
