#include "server/transports/grpc_1_51/tcp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"

namespace longshort::server {
namespace {

uint64_t CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t length = sizeof(cookie);
  return getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

}  // namespace

std::optional<SocketIdentity> IdentityOf(int socket) {
  const uint64_t cookie = CookieOf(socket);
  if (cookie == 0) return std::nullopt;
  return SocketIdentity{.number = socket, .cookie = cookie};
}

std::string PeerOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
    return absl::StrCat("ipv4:", text.data(), ":", ntohs(ipv4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "unix:";
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
  const std::string zone = ipv6.sin6_scope_id == 0 ? "" : absl::StrCat("%25", ipv6.sin6_scope_id);
  return absl::StrCat("ipv6:%5B", text.data(), zone, "%5D:", ntohs(ipv6.sin6_port));
}

std::optional<ConnectionBytes> ReadConnectionBytes(const SocketIdentity& socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  int unread = 0;
  const bool is_tcp = getsockopt(socket.number, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
  if (is_tcp && ioctl(socket.number, FIONREAD, &unread) != 0) return std::nullopt;
  // Checked last, because the number may have been reused before the reads above.
  if (CookieOf(socket.number) != socket.cookie) return std::nullopt;
  return ConnectionBytes{.received = static_cast<int64_t>(info.tcpi_bytes_received),
                         .unread = unread,
                         .taken = static_cast<int64_t>(info.tcpi_bytes_acked),
                         .unsent = static_cast<int64_t>(info.tcpi_notsent_bytes)};
}

namespace {

// Calls use(number) while the number cannot be reused, for some microseconds. Returns whether the socket was open.
template <typename Use>
bool WithSocket(const SocketIdentity& socket, const Use& use) {
  const int held = fcntl(socket.number, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return false;
  const bool same = CookieOf(held) == socket.cookie;
  if (same) use(held);
  close(held);
  return same;
}

}  // namespace

bool SeverConnection(const SocketIdentity& socket) {
  return WithSocket(socket, [](int held) {
    // Also discards unread data, which shutdown would leave to be read.
    const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
    if (connect(held, &nowhere, sizeof(nowhere)) != 0) shutdown(held, SHUT_RDWR);
  });
}

bool SetReading(const SocketIdentity& socket, bool reads) {
  return WithSocket(socket, [reads](int held) {
    if (reads) {
      const int ignored = 0;
      setsockopt(held, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
    } else {
      sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
      const sock_fprog program = {.len = 1, .filter = &drop};
      setsockopt(held, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
    }
  });
}

}  // namespace longshort::server
