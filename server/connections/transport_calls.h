// How many calls and messages gRPC has of each connection, from what it tells debuggers ("channelz"): also those that
// no service has seen.
//
// Thread: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/connections/connection_conduct.h"

namespace longshort {

class TransportCalls final {
 public:
  // Of the connection with this peer (PeerOf), if gRPC has taken it. A number of microseconds; more the first time for
  // each connection.
  std::optional<ConnectionCalls> Read(const std::string& peer);
  // The connection was closed.
  void Forget(const std::string& peer) { sockets_.erase(peer); }

 private:
  // Reads the numbers of the sockets that have come since.
  void FindSockets();

  std::unordered_map<std::string, intptr_t> sockets_;  // gRPC's numbers by peer
  intptr_t next_socket_ = 0;
};

}  // namespace longshort
