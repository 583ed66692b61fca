#include "server/transports/grpc_1_51/connection_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace longshort::server {
namespace {

// Descriptors reserved for other files; at most a quarter of all.
constexpr int64_t kReserved = 128;
// Connections that wait for their time, of all clients.
constexpr int64_t kMaxWaiting = 1024;
// Interval for retrying accept while no descriptor is left at all.
constexpr absl::Duration kRetryAccept = absl::Milliseconds(100);
// Connections accepted before the listener checks whether it should end.
constexpr int kMaxAtOnce = 64;
// Rounds of accepting at the end: enough for the queued connections, but finite if more keep arriving.
constexpr int kMaxLastTurns = 64;
// Minimum interval between reports of refused connections.
constexpr absl::Duration kRefusalLogInterval = absl::Seconds(1);
// Connections that may be silent at a time, and how long: later ones are handed over at once.
constexpr size_t kMaxSilent = 64;
constexpr absl::Duration kSilence = absl::Milliseconds(100);

int64_t DescriptorLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<int64_t>(limit.rlim_cur) : 1024;
}

// The first line of a request of HTTP/2 begins with PRI.
bool IsHttp1(std::string_view beginning) {
  constexpr std::string_view kMethods[] = {"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH "};
  return std::any_of(std::begin(kMethods), std::end(kMethods),
                     [&](std::string_view method) { return beginning.starts_with(method); });
}

std::string HttpAnswer(const std::string& http) {
  const std::string body = absl::StrCat("This is the gRPC port. HTTP is at ", http, ".\n");
  return absl::StrCat("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: ",
                      body.size(), "\r\n\r\n", body);
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

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Bind(const ListenAddress& address, int64_t mode,
                                                                             const std::string& http) {
  const NamedAddress name{.option = "listen", .address = address};
  LS_ASSIGN_OR_RETURN(ListeningSockets listening, BindSockets(name, mode));
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(name, std::move(listening)));
  listener->wake_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (listener->wake_.number() < 0) return CannotBind(name, std::system_category().message(errno));
  listener->http_answer_ = HttpAnswer(http);
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
    if (!silent_.empty()) {
      wait = std::clamp(silent_.front().accepted + kSilence - MonotonicNow(), absl::ZeroDuration(), wait);
    }
    if (refused_ > 0) wait = std::min(wait, kRefusalLogInterval);
    const int max_milliseconds =
        wait == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
    std::vector<pollfd> polled(sockets.begin(), has_room ? sockets.end() : sockets.begin() + 1);
    for (const Silent& one : silent_) {
      polled.push_back({.fd = one.connection.number(), .events = POLLIN, .revents = 0});
    }
    const int ready = poll(polled.data(), polled.size(), max_milliseconds);
    if (ready > 0 && polled[0].revents != 0) return AcceptLast({sockets.begin() + 1, sockets.end()});
    TakeSilent(MonotonicNow());
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
  TakeSilent(absl::InfiniteFuture());
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
    if (static_cast<int64_t>(waiting_.size()) >= std::min(kMaxWaiting, first_reserved_ / 8)) {
      ++refused_;
      return;
    }
    waiting_.emplace(*begin, std::move(connection));
  } else {
    HandOver(std::move(connection));
  }
}

absl::Duration ConnectionListener::HandOverWaiting() {
  const absl::Time now = MonotonicNow();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    HandOver(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  return waiting_.empty() ? absl::InfiniteDuration() : waiting_.begin()->first - now;
}

void ConnectionListener::HandOver(Descriptor connection) {
  if (TakeIfKnown(connection)) return;
  if (silent_.size() < kMaxSilent) {
    silent_.push_back({std::move(connection), MonotonicNow()});
  } else {
    handlers_.accepted(connection.Release());
  }
}

bool ConnectionListener::TakeIfKnown(Descriptor& connection) {
  std::array<char, 8> beginning;
  const ssize_t size = recv(connection.number(), beginning.data(), beginning.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN) return false;
  if (size > 0 && IsHttp1({beginning.data(), static_cast<size_t>(size)})) {
    Answer(std::move(connection));
  } else {
    handlers_.accepted(connection.Release());
  }
  return true;
}

void ConnectionListener::TakeSilent(absl::Time now) {
  std::vector<Silent> still_silent;
  for (Silent& one : silent_) {
    if (TakeIfKnown(one.connection)) continue;
    if (now - one.accepted < kSilence) {
      still_silent.push_back(std::move(one));
    } else {
      handlers_.accepted(one.connection.Release());
    }
  }
  silent_ = std::move(still_silent);
}

void ConnectionListener::Answer(Descriptor connection) const {
  // Unread bytes would reset the connection before the client reads the answer. Most requests have fewer than these.
  std::array<char, 1 << 14> request;
  recv(connection.number(), request.data(), request.size(), MSG_DONTWAIT);
  send(connection.number(), http_answer_.data(), http_answer_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(connection.number(), SHUT_WR);
}

}  // namespace longshort::server
