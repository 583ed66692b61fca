// Counts of calls and messages of each connection, from gRPC's debugging interface ("channelz"). They include calls
// that no service has seen.
//
// Thread: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/transports/grpc_1_51/abuse_detector.h"

namespace longshort::server {

class TransportCalls final {
 public:
  // Begins a poll of `connections` connections. Until the next one, Read looks for new sockets at most once, even if
  // gRPC does not have some connections yet (TLS handshakes).
  void BeginPoll(size_t connections);
  // The counts of the connection with this peer (PeerOf); nullopt if gRPC does not have it. Takes some microseconds,
  // and longer the first time for each connection.
  std::optional<ConnectionCalls> Read(const std::string& peer);
  // The calls of all connections in memory. Takes some microseconds.
  int64_t CountOpen() const;

 private:
  // Reads the numbers of new sockets.
  void FindSockets();

  std::unordered_map<std::string, intptr_t> sockets_;  // gRPC's numbers by peer, including some closed ones
  intptr_t next_socket_ = 0;
  bool may_find_ = false;
};

}  // namespace longshort::server
