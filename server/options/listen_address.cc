#include "server/options/listen_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace longshort::server {
namespace {

constexpr uint32_t kLoopbackNetwork = 127;  // 127.0.0.0/8
constexpr absl::string_view kUnix = "unix:";

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == kLoopbackNetwork;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& long_address = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&long_address) ||
         (IN6_IS_ADDR_V4MAPPED(&long_address) && long_address.s6_addr[12] == kLoopbackNetwork);
}

// gRPC's clients write unix:/path or unix:///path.
absl::StatusOr<ListenAddress> ParsePath(const std::string& text) {
  constexpr size_t kMaxBytes = sizeof(sockaddr_un::sun_path) - 1;
  ListenAddress address;
  address.path = text.substr(absl::StartsWith(text, "///") ? 2 : 0);
  if (address.path.back() == '/')
    return absl::InvalidArgumentError("names a folder; it must name a socket: unix:/path");
  if (address.path.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("has a path of ", address.path.size(),
                                                   " bytes; the path of a Unix socket must have at most ", kMaxBytes));
  }
  return address;
}

}  // namespace

std::string ListenAddress::ToString() const {
  if (is_unix()) return absl::StrCat(kUnix, path);
  const bool bracketed = host.find(':') != std::string::npos;
  return bracketed ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  if (absl::StartsWith(text, "unix:/")) return ParsePath(text.substr(kUnix.size()));
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find(':') != std::string::npos)) {
    return absl::InvalidArgumentError(
        "must be host:port (an IPv6 host is in brackets: [::1]:8500), or unix:/path for a Unix socket");
  }
  const std::string port_text = text.substr(colon + 1);
  ListenAddress address{.host = std::move(host)};
  if (!absl::SimpleAtoi(port_text, &address.port) || address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("has the port '", port_text, "'; it must be in [0, 65535]"));
  }
  return address;
}

absl::Status CheckIsLoopback(const char* option, const ListenAddress& address) {
  if (address.is_unix()) return absl::OkStatus();
  const std::string named = absl::StrCat("--", option, "=", address.ToString());
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), nullptr, &hints, &found); error != 0) {
    const std::string why = error == EAI_SYSTEM ? std::system_category().message(errno) : gai_strerror(error);
    return absl::InvalidArgumentError(absl::StrCat(named, " does not resolve to an address: ", why));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (IsLoopback(*one->ai_addr)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        named,
        " can be reached from other machines, and nothing is encrypted: give --tls-certificate and --tls-key, "
        "or --insecure if the network is trusted"));
  }
  return absl::OkStatus();
}

}  // namespace longshort::server
