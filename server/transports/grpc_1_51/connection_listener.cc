#include "server/transports/grpc_1_51/connection_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

// Descriptors reserved for other files; at most a quarter of all.
constexpr int64_t kReserved = 128;
// Connections that wait for their time, of all clients.
constexpr size_t kMaxWaiting = 1024;
// Interval for retrying accept while no descriptor is left at all.
constexpr absl::Duration kRetryAccept = absl::Milliseconds(100);
// Connections accepted before the listener checks whether it should end.
constexpr int kMaxAtOnce = 64;
// Rounds of accepting at the end: enough for the queued connections, but finite if more keep arriving.
constexpr int kMaxLastTurns = 64;
// Minimum interval between reports of refused connections.
constexpr absl::Duration kRefusalLogInterval = absl::Seconds(1);

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

int64_t CountConnections(const ListenAddress& address) {
  int64_t connections = 0;
  std::error_code error;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int number = -1;
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (!absl::SimpleAtoi(open.path().filename().string(), &number)) continue;
    if (address.is_unix() ? PathOf(number) != address.path : PortOf(number) != address.port) continue;
    if (getpeername(number, reinterpret_cast<sockaddr*>(&peer), &length) == 0) ++connections;
  }
  return connections;
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Bind(const ListenAddress& address,
                                                                             int64_t mode) {
  const NamedAddress name{.option = "listen", .address = address};
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name, mode));
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
  listening_.file.reset();  // no connection is queued any more
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
  absl::Time next_log = absl::InfinitePast();
  while (true) {
    absl::Duration wait = HandOverWaiting();
    if (!has_room) wait = std::min(wait, kRetryAccept);
    if (refused_ > 0) wait = std::min(wait, kRefusalLogInterval);
    const int max_milliseconds =
        wait == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
    const int ready = poll(sockets.data(), has_room ? sockets.size() : 1, max_milliseconds);
    if (ready > 0 && sockets[0].revents != 0) return AcceptLast({sockets.begin() + 1, sockets.end()});
    has_room = true;
    for (const Descriptor& listening : listening_.sockets) has_room = AcceptFrom(listening.number()) && has_room;
    if (const absl::Time now = MonotonicNow(); refused_ > 0 && now >= next_log) {
      handlers_.refused(std::exchange(refused_, 0));
      next_log = now + kRefusalLogInterval;
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
    // Other errors concern only that connection, or none is queued.
    if (connection.number() < 0) return !IsOutOfDescriptors(errno);
    // The system assigns the lowest free number, so the number shows how many are in use.
    if (connection.number() >= first_reserved_) {
      ++refused_;
    } else {
      Admit(std::move(connection));
    }
  }
  return true;
}

void ConnectionListener::Admit(Descriptor connection) {
  const absl::Time now = MonotonicNow();
  const std::optional<absl::Time> begin = handlers_.admitted == nullptr ? now : handlers_.admitted(connection.number());
  if (!begin.has_value()) return;
  if (*begin > now) {
    if (waiting_.size() >= kMaxWaiting) return;
    waiting_.emplace(*begin, std::move(connection));
  } else {
    handlers_.accepted(connection.Release());
  }
}

absl::Duration ConnectionListener::HandOverWaiting() {
  const absl::Time now = MonotonicNow();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    handlers_.accepted(waiting_.begin()->second.Release());
    waiting_.erase(waiting_.begin());
  }
  return waiting_.empty() ? absl::InfiniteDuration() : waiting_.begin()->first - now;
}

}  // namespace longshort::server
