// How many calls and messages gRPC has of each connection, from what it tells debuggers ("channelz"): also those that
// no service has seen.
//
// Thread: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/grpc_1_51/abuse_detector.h"

namespace longshort::server {

class TransportCalls final {
 public:
  // To be called before the connections are looked at, of which there are so many. Sockets that have come since are
  // looked for once until the next time, however many connections gRPC does not have yet (TLS).
  void BeginLook(size_t connections);
  // Of the connection with this peer (PeerOf), if gRPC has taken it. A number of microseconds; more the first time for
  // each connection.
  std::optional<ConnectionCalls> Read(const std::string& peer);

 private:
  // Reads the numbers of the sockets that have come since.
  void FindSockets();

  std::unordered_map<std::string, intptr_t> sockets_;  // gRPC's numbers by peer; of some closed ones, too
  intptr_t next_socket_ = 0;
  bool may_find_ = false;
};

}  // namespace longshort::server
