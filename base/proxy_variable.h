// The environment variable that makes a gRPC client connect through a proxy.
#pragma once

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace longshort {

// For errors of connections; empty if no such variable is set. gRPC reads the first that is set; an empty one means no
// proxy.
inline std::string ExplainProxyVariable() {
  for (const char* proxy : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const char* const value = std::getenv(proxy);
    if (value == nullptr) continue;
    if (*value == '\0') break;
    return absl::StrCat(proxy, " is set: gRPC connects through this proxy, except to the hosts in no_proxy");
  }
  return {};
}

}  // namespace longshort
