// What came with a call to prove who asks, as a front read it. Nothing of it has been checked, but that a certificate
// is the peer's: the connection was refused otherwise.
#pragma once

#include <optional>
#include <string>

namespace longshort {

struct Credentials {
  // The value of `authorization`. Several are joined with commas, as HTTP has it, and are no token then.
  std::optional<std::string> authorization = std::nullopt;
  // Of the peer's certificate, if the connection has mutual TLS: its SPIFFE id, and its subject (RFC 2253).
  std::string spiffe_id = {};
  std::string certificate_subject = {};
};

}  // namespace longshort
