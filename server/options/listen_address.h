// An address to listen on, and whether other machines can reach it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// A host name or address, and a port (0 lets the system choose).
struct ListenAddress {
  std::string host;
  int port = 0;

  // "host:port"; an IPv6 host is in brackets.
  std::string ToString() const;
};

// Parses "host:port" or "[ipv6]:port". Errors: INVALID_ARGUMENT saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Checks that only this machine can reach the address of --`option`: its host resolves only to loopback addresses.
// Errors: INVALID_ARGUMENT naming the option, the address, and what to do; also if the host cannot be resolved.
absl::Status CheckIsLoopback(const char* option, const ListenAddress& address);

}  // namespace longshort::server
