// A connection's socket that somebody else owns and closes: known by its number and by what the system tells sockets
// apart with, since numbers are used again.
//
// Thread-safe. Nothing here keeps a socket open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/grpc_1_51/abuse_detector.h"

namespace longshort::server {

struct SocketIdentity {
  int number = -1;
  uint64_t cookie = 0;  // SO_COOKIE: never given twice
};

// Nothing if `socket` is none.
std::optional<SocketIdentity> IdentityOf(int socket);

// The other side, as gRPC calls it: "ipv4:127.0.0.1:1234", "ipv6:%5B::1%5D:1234". Empty if it is gone.
std::string PeerOf(int socket);

// Nothing if the socket was closed.
std::optional<ConnectionBytes> ReadConnectionBytes(const SocketIdentity& socket);

// Ends the connection at once: what was not read or not sent is thrown away, and both sides see a reset. Its owner
// closes the socket. False if it was closed, or the process has no descriptor for this now.
bool SeverConnection(const SocketIdentity& socket);

}  // namespace longshort::server
