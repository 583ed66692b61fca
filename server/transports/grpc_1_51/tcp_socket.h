// A connection's socket that gRPC owns and closes. It is identified by its number and its cookie, since the system
// reuses numbers.
//
// Thread-safe. Nothing here keeps a socket open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/transports/grpc_1_51/abuse_detector.h"

namespace longshort::server {

struct SocketIdentity {
  int number = -1;
  uint64_t cookie = 0;  // SO_COOKIE: never reused
};

// nullopt if `socket` is not a socket.
std::optional<SocketIdentity> IdentityOf(int socket);

// The peer's address in gRPC's form: "ipv4:127.0.0.1:1234", "ipv6:%5B::1%5D:1234", "unix:". Empty if it is
// disconnected.
std::string PeerOf(int socket);

// nullopt if the socket was closed. The system does not count the bytes of a Unix socket: all are 0.
std::optional<ConnectionBytes> ReadConnectionBytes(const SocketIdentity& socket);

// Resets the connection at once and discards unread and unsent data. The owner still closes the socket. False if it
// was closed, or the process has no descriptor left for this call.
bool SeverConnection(const SocketIdentity& socket);

// Without reading, the system drops what arrives on this connection, acknowledgements included. The client's system
// sends all of it again, so nothing is lost. False as for SeverConnection.
bool SetReading(const SocketIdentity& socket, bool reads);

}  // namespace longshort::server
