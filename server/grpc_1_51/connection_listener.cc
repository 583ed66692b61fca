#include "server/grpc_1_51/connection_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

// Descriptors that connections leave for what else opens files; a quarter of all where there are few.
constexpr int64_t kReserved = 128;
// If even those are gone, it is looked so often whether there are some again.
constexpr int kLookAgainMilliseconds = 100;
// Then the listener looks whether it is to end.
constexpr int kMaxAtOnce = 64;
// What is accepted at the end: as much as waits at once, not all that goes on coming.
constexpr int kMaxLastTurns = 64;
// How often it is said at the most that connections were refused.
constexpr absl::Duration kLogRefusalsAgain = absl::Seconds(1);

bool IsOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

int64_t DescriptorLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<int64_t>(limit.rlim_cur) : 1024;
}

}  // namespace

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
  const NamedAddress name{.option = "listen", .address = address};
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name));
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(name, std::move(listening)));
  listener->wake_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (listener->wake_.number() < 0) return CannotBind(name, std::system_category().message(errno));
  const int64_t limit = DescriptorLimit();
  listener->first_reserved_ = limit - std::min(kReserved, limit / 4);
  return listener;
}

absl::Status ConnectionListener::Start(Handlers handlers) {
  handlers_ = std::move(handlers);
  LS_RETURN_IF_ERROR(Listen(name_, listening_));
  return thread_.Start("the listener's thread", [this] { Accept(); });
}

ConnectionListener::~ConnectionListener() {
  if (!thread_.started()) return;
  eventfd_write(wake_.number(), 1);
  thread_.Join();
}

void ConnectionListener::Accept() {
  std::vector<pollfd> sockets = {{.fd = wake_.number(), .events = POLLIN, .revents = 0}};
  for (const Descriptor& listening : listening_.sockets) {
    sockets.push_back({.fd = listening.number(), .events = POLLIN, .revents = 0});
  }
  bool has_room = true;
  absl::Time say_again = absl::InfinitePast();
  while (true) {
    const int max_milliseconds = !has_room      ? kLookAgainMilliseconds
                                 : refused_ > 0 ? static_cast<int>(absl::ToInt64Milliseconds(kLogRefusalsAgain))
                                                : -1;
    const int ready = poll(sockets.data(), has_room ? sockets.size() : 1, max_milliseconds);
    if (ready > 0 && sockets[0].revents != 0) return AcceptLast({sockets.begin() + 1, sockets.end()});
    has_room = true;
    for (const Descriptor& listening : listening_.sockets) has_room = AcceptFrom(listening.number()) && has_room;
    if (const absl::Time now = MonotonicNow(); refused_ > 0 && now >= say_again) {
      handlers_.refused(std::exchange(refused_, 0));
      say_again = now + kLogRefusalsAgain;
    }
  }
}

void ConnectionListener::AcceptLast(std::vector<pollfd> listening) {
  for (int i = 0; i < kMaxLastTurns && poll(listening.data(), listening.size(), 0) > 0; ++i) {
    for (const pollfd& socket : listening) AcceptFrom(socket.fd);
  }
}

bool ConnectionListener::AcceptFrom(int listening) {
  for (int i = 0; i < kMaxAtOnce; ++i) {
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

}  // namespace longshort::server
