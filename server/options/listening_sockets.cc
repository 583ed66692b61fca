#include "server/options/listening_sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

constexpr char kInUse[] = "another process listens on it";

absl::Status SystemError(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(path, ": ", std::system_category().message(errno)));
}

std::string LockPath(const std::string& path) { return absl::StrCat(path, ".lock"); }

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// The locked file. Its owner removes it while it has the lock, so a file that was opened before may be gone.
absl::StatusOr<Descriptor> Lock(const std::string& path) {
  while (true) {
    Descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (lock.number() < 0) return SystemError(path);
    if (flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
      return errno == EWOULDBLOCK ? absl::UnavailableError(kInUse) : SystemError(path);
    }
    struct stat locked {};
    struct stat there {};
    if (fstat(lock.number(), &locked) != 0) return SystemError(path);
    if (stat(path.c_str(), &there) == 0 && there.st_ino == locked.st_ino && there.st_dev == locked.st_dev) return lock;
  }
}

// Removes a socket on which nothing listens. Other programs have no lock file, so it tries to connect.
absl::Status RemoveStale(const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) return errno == ENOENT ? absl::OkStatus() : SystemError(path);
  if (!S_ISSOCK(there.st_mode))
    return absl::UnavailableError("it is a file, and no socket; the server would replace it");
  const Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(path);
  const int failed = connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (failed == 0 || errno == EAGAIN) return absl::UnavailableError(kInUse);  // EAGAIN: its queue is full
  if (errno != ECONNREFUSED || unlink(path.c_str()) != 0) return SystemError(path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Bind(int socket, const std::string& path, int64_t mode) {
  LS_ASSIGN_OR_RETURN(Descriptor lock, Lock(LockPath(path)));
  std::unique_ptr<SocketFile> file(new SocketFile(path, std::move(lock)));
  LS_RETURN_IF_ERROR(RemoveStale(path));
  const sockaddr_un address = AddressOf(path);
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return SystemError(path);
  file->is_bound_ = true;
  if (chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) return SystemError(path);
  return file;
}

SocketFile::~SocketFile() {
  if (is_bound_) unlink(path_.c_str());
  unlink(LockPath(path_).c_str());
}

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

// How long sent data may stay unacknowledged before the system closes the connection.
constexpr int kUnacknowledgedMilliseconds = 20'000;
// Bytes that the system holds for a connection before it sends them. By default it takes megabytes, which are in no
// account and are copied before other connections' turn.
constexpr int kMaxUnsent = 64 << 10;

std::string ErrorText(int number) { return std::system_category().message(number); }

void SetOption(int socket, int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof(value)); }

void SetPort(sockaddr_storage& address, int port) {
  if (address.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (address.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;

  friend bool operator==(const SocketAddress& a, const SocketAddress& b) {
    return a.length == b.length && std::memcmp(&a.address, &b.address, a.length) == 0;
  }
};

absl::StatusOr<std::vector<SocketAddress>> AddressesOf(const NamedAddress& name) {
  const ListenAddress& address = name.address;
  const bool is_any = address.host == "::";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(address.port);
  if (const int error = getaddrinfo(is_any ? nullptr : address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return CannotBind(name, error == EAI_SYSTEM ? ErrorText(errno) : gai_strerror(error));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress next{.address = {}, .length = one->ai_addrlen};
    std::memcpy(&next.address, one->ai_addr, one->ai_addrlen);
    // getaddrinfo returns an address twice if two lines of /etc/hosts have it.
    if (std::find(addresses.begin(), addresses.end(), next) == addresses.end()) addresses.push_back(next);
  }
  return addresses;
}

// Binds a socket to this address. Returns 0 or errno.
int BindTo(const SocketAddress& at, Descriptor& bound) {
  bound = Descriptor(socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int number = bound.number();
  if (number < 0) return errno;
  // No SO_REUSEPORT: two servers on one port must be an error.
  SetOption(number, SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.address.ss_family == AF_INET6) SetOption(number, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  // Connections inherit these options.
  SetOption(number, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(number, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMilliseconds);
  SetOption(number, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kMaxUnsent);
  return bind(number, reinterpret_cast<const sockaddr*>(&at.address), at.length) == 0 ? 0 : errno;
}

absl::StatusOr<ListeningSockets> BindUnixSocket(const NamedAddress& name, int64_t mode) {
  ListeningSockets listening;
  listening.sockets.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int number = listening.sockets.front().number();
  if (number < 0) return CannotBind(name, ErrorText(errno));
  absl::StatusOr<std::unique_ptr<SocketFile>> file = SocketFile::Bind(number, name.address.path, mode);
  if (!file.ok()) return CannotBind(name, std::string(file.status().message()));
  listening.file = *std::move(file);
  return listening;
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
bool IsOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port) : 0;
}

std::string PathOf(int socket) {
  sockaddr_un address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return address.sun_family == AF_UNIX ? std::string(address.sun_path) : "";
}

absl::Status CannotBind(const NamedAddress& name, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("--", name.option, "=", name.address.ToString(), " cannot be bound: ", why));
}

absl::StatusOr<ListeningSockets> BindSockets(const NamedAddress& name, int64_t mode) {
  if (name.address.is_unix()) return BindUnixSocket(name, mode);
  LS_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, AddressesOf(name));
  ListeningSockets listening{.sockets = {}, .port = name.address.port};
  int why_not = 0;
  for (SocketAddress& next : addresses) {
    if (listening.port != 0)
      SetPort(next.address, listening.port);  // the port that the system chose for the first address
    Descriptor bound;
    if (const int error = BindTo(next, bound); error != 0) {
      if (error == EADDRINUSE) return CannotBind(name, ErrorText(error));
      why_not = error;  // such as an address family that this machine lacks
      continue;
    }
    listening.port = PortOf(bound.number());
    listening.sockets.push_back(std::move(bound));
  }
  if (listening.sockets.empty()) return CannotBind(name, ErrorText(why_not));
  return listening;
}

absl::Status Listen(const NamedAddress& name, const ListeningSockets& listening) {
  for (const Descriptor& socket : listening.sockets) {
    if (listen(socket.number(), SOMAXCONN) != 0) return CannotBind(name, ErrorText(errno));
  }
  return absl::OkStatus();
}

}  // namespace longshort::server
