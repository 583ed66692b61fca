// Where the server listens, and who can reach it there.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort::server {

// A host name or address, and a port (0 lets the system choose).
struct ListenAddress {
  std::string host;
  int port = 0;

  // "host:port"; an IPv6 host stands in brackets.
  std::string ToString() const;
};

// Reads "host:port" or "[ipv6]:port". Errors: INVALID_ARGUMENT saying what is wrong with `text`.
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text);

// Whether only this machine reaches the address of --`option`: all addresses that its host stands for are loopback.
// Errors: INVALID_ARGUMENT naming the option, the address, and what to do; also if the host's addresses cannot be
// found.
absl::Status CheckIsLoopback(const char* option, const ListenAddress& address);

}  // namespace longshort::server
