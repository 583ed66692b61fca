// An address to listen on, and whether other machines can reach it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

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

}  // namespace longshort::server
