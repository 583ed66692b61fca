#include "server/lifecycle/connection_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort {
namespace {

// Descriptors that connections leave for what else opens files; a quarter of all where there are few.
constexpr int64_t kReserved = 128;
// If even those are gone, it is looked so often whether there are some again.
constexpr int kLookAgainMilliseconds = 100;
// Then the listener looks whether it is to end.
constexpr int kMostAtOnce = 64;
// How often it is said at the most that connections were refused.
constexpr absl::Duration kSayAgain = absl::Seconds(1);
// How long what was sent may stay unacknowledged: then the client is gone.
constexpr int kUnacknowledgedMilliseconds = 20'000;

absl::Status CannotBind(const ListenAddress& address, std::string_view why) {
  return absl::UnavailableError(absl::StrCat("--listen=", address.ToString(), " cannot be bound: ", std::string(why)));
}

std::string ErrorText(int number) { return std::system_category().message(number); }

void SetOption(int socket, int level, int name, int value) { setsockopt(socket, level, name, &value, sizeof(value)); }

void SetPort(sockaddr_storage& address, int port) {
  if (address.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (address.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t length = 0;

  friend bool operator==(const SocketAddress& a, const SocketAddress& b) {
    return a.length == b.length && std::memcmp(&a.address, &b.address, a.length) == 0;
  }
};

absl::StatusOr<std::vector<SocketAddress>> AddressesOf(const ListenAddress& address) {
  const bool is_any = address.host == "::";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(address.port);
  if (const int error = getaddrinfo(is_any ? nullptr : address.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return CannotBind(address, error == EAI_SYSTEM ? ErrorText(errno) : gai_strerror(error));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress next{.address = {}, .length = one->ai_addrlen};
    std::memcpy(&next.address, one->ai_addr, one->ai_addrlen);
    // A name that stands in two lines of /etc/hosts has its address twice.
    if (std::find(addresses.begin(), addresses.end(), next) == addresses.end()) addresses.push_back(next);
  }
  return addresses;
}

// Makes a socket of this address; returns 0, or the system's number of what is wrong.
int BindTo(const SocketAddress& at, Descriptor& bound) {
  bound = Descriptor(socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int number = bound.number();
  if (number < 0) return errno;
  // No SO_REUSEPORT: two servers on one port must not go unnoticed.
  SetOption(number, SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.address.ss_family == AF_INET6) SetOption(number, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  // Connections inherit both.
  SetOption(number, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(number, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMilliseconds);
  return bind(number, reinterpret_cast<const sockaddr*>(&at.address), at.length) == 0 ? 0 : errno;
}

bool IsOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

int64_t DescriptorLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<int64_t>(limit.rlim_cur) : 1024;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

int Descriptor::Release() { return std::exchange(number_, -1); }

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t CountConnections(int port) {
  int64_t connections = 0;
  std::error_code error;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int number = -1;
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (!absl::SimpleAtoi(open.path().filename().string(), &number) || PortOf(number) != port) continue;
    if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &length) == 0) ++connections;
  }
  return connections;
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Bind(const ListenAddress& address) {
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(address));
  LS_RETURN_IF_ERROR(listener->BindAll());
  listener->wake_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (listener->wake_.number() < 0) return CannotBind(address, ErrorText(errno));
  const int64_t limit = DescriptorLimit();
  listener->first_reserved_ = limit - std::min(kReserved, limit / 4);
  return listener;
}

absl::Status ConnectionListener::BindAll() {
  LS_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, AddressesOf(address_));
  int why_not = 0;
  for (SocketAddress& next : addresses) {
    if (port_ != 0) SetPort(next.address, port_);  // the one that the system chose for the first
    Descriptor bound;
    if (const int error = BindTo(next, bound); error != 0) {
      if (error == EADDRINUSE) return CannotBind(address_, ErrorText(error));
      why_not = error;  // of a family that this machine does not have, say
      continue;
    }
    port_ = PortOf(bound.number());
    listening_.push_back(std::move(bound));
  }
  return listening_.empty() ? CannotBind(address_, ErrorText(why_not)) : absl::OkStatus();
}

absl::Status ConnectionListener::Start(Handlers handlers) {
  handlers_ = std::move(handlers);
  for (const Descriptor& listening : listening_) {
    if (listen(listening.number(), SOMAXCONN) != 0) return CannotBind(address_, ErrorText(errno));
  }
  try {
    thread_ = std::thread(&ConnectionListener::Accept, this);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start the listener's thread: ", error.what()));
  }
  return absl::OkStatus();
}

ConnectionListener::~ConnectionListener() {
  if (!thread_.joinable()) return;
  eventfd_write(wake_.number(), 1);
  thread_.join();
}

void ConnectionListener::Accept() {
  std::vector<pollfd> sockets = {{.fd = wake_.number(), .events = POLLIN, .revents = 0}};
  for (const Descriptor& listening : listening_) {
    sockets.push_back({.fd = listening.number(), .events = POLLIN, .revents = 0});
  }
  bool has_room = true;
  absl::Time say_again = absl::InfinitePast();
  while (true) {
    const int most_milliseconds = !has_room      ? kLookAgainMilliseconds
                                  : refused_ > 0 ? static_cast<int>(absl::ToInt64Milliseconds(kSayAgain))
                                                 : -1;
    const int ready = poll(sockets.data(), has_room ? sockets.size() : 1, most_milliseconds);
    if (ready > 0 && sockets[0].revents != 0) return;
    has_room = true;
    for (const Descriptor& listening : listening_) has_room = AcceptFrom(listening.number()) && has_room;
    if (const absl::Time now = MonotonicNow(); refused_ > 0 && now >= say_again) {
      handlers_.refused(std::exchange(refused_, 0));
      say_again = now + kSayAgain;
    }
  }
}

bool ConnectionListener::AcceptFrom(int listening) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Descriptor connection(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    // Otherwise what was wrong is that connection's, or there is none.
    if (connection.number() < 0) return !IsOutOfDescriptors(errno);
    // The system gives the lowest number that is free, so as many are in use.
    if (connection.number() >= first_reserved_) {
      ++refused_;
    } else {
      handlers_.accepted(connection.Release());
    }
  }
  return true;
}

}  // namespace longshort
