// The address to listen on, and the sockets that listen there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/options/socket_file.h"

namespace longshort::server {

// A host name or address, and a port (0 lets the system choose); or the path of a Unix socket.
struct ListenAddress {
  std::string host;
  int port = 0;
  std::string path = {};  // of a Unix socket, which has no host and no port; otherwise empty

  bool is_unix() const { return !path.empty(); }
  // "host:port", where an IPv6 host is in brackets, or "unix:/path".
  std::string ToString() const;
};

// Parses "host:port", "[ipv6]:port" or "unix:/path". Errors: INVALID_ARGUMENT saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Checks that only this machine can reach the address of --`option`: its host resolves only to loopback addresses.
// Errors: INVALID_ARGUMENT naming the option, the address, and what to do; also if the host cannot be resolved.
absl::Status CheckIsLoopback(const char* option, const ListenAddress& address);

// The local port of a socket; 0 if it has none.
int PortOf(int socket);
// The local path of a Unix socket; empty if it has none.
std::string PathOf(int socket);

struct ListeningSockets {
  // Non-blocking; one for each address that the host resolves to.
  std::vector<Descriptor> sockets;
  int port = 0;
  std::unique_ptr<SocketFile> file = nullptr;  // of a Unix socket
};

// `option`, without dashes, names the address in errors.
struct NamedAddress {
  std::string option;
  ListenAddress address;
};

// Whether accept failed with this errno because the process or the system cannot make another socket now. Other errors
// concern only one connection.
bool IsOutOfDescriptors(int error);

absl::Status CannotBind(const NamedAddress& name, const std::string& why);

// Binds all addresses that the host resolves to; connections are refused until Listen. "[::]" is any IPv4 or IPv6
// address, "0.0.0.0" any IPv4 address. A Unix socket gets the file mode `mode`. Errors: UNAVAILABLE if none can be
// bound, or one of them is in use.
absl::StatusOr<ListeningSockets> BindSockets(const NamedAddress& name, int64_t mode = kDefaultSocketMode);

// Starts to listen: the system queues connections until they are accepted. Errors: UNAVAILABLE if another process has
// begun to listen on one of the addresses.
absl::Status Listen(const NamedAddress& name, const ListeningSockets& listening);

}  // namespace longshort::server
