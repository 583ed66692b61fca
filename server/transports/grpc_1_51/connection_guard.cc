#include "server/transports/grpc_1_51/connection_guard.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/freed_memory.h"
#include "server/access/access_table.h"

namespace longshort::server {
namespace {

// Until the next poll, a connection can make gRPC allocate some hundred megabytes per second.
constexpr absl::Duration kInterval = absl::Milliseconds(20);
// An idle connection is polled at every fiftieth poll, only to find out that gRPC has closed it.
constexpr int64_t kIdlePolls = 50;
// Minimum interval between reports of closed connections.
constexpr absl::Duration kReportInterval = absl::Seconds(1);
// gRPC usually destroys a connection with many calls within this time. Then its memory is returned to the system;
// otherwise the allocator would keep it, as it does for the models' batches (models/device/library.h). On a busy
// machine gRPC takes longer, and the memory is returned again, for as long as gRPC has the connection.
constexpr absl::Duration kMemoryReturnDelay = absl::Seconds(2);
constexpr absl::Duration kLongestClosing = absl::Minutes(1);
// A call without its message takes up to 32 KB. So many that ended leave enough freed memory behind.
constexpr int64_t kNoticedCalls = 1000;
// The bytes of a call's head that repeats the one before.
constexpr int64_t kSmallestHead = 13;
// Fewer bytes since a connection's last message do not count: they can be pings and window updates.
constexpr int64_t kNoticedIdleBytes = 64 << 10;
// A connection that sent at least this much may leave freed memory behind, even if it ended normally.
constexpr int64_t kNoticedBytes = 256 * 1024;

absl::Duration CpuTime() {
  timespec used{};
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 ? absl::DurationFromTimespec(used) : absl::ZeroDuration();
}

}  // namespace

absl::Status ConnectionGuard::Start() {
  arrivals_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (arrivals_.number() < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::system_category().message(errno)));
  }
  return thread_.Start("the thread that guards connections", {.interval = kInterval, .run = [this] { Poll(); }});
}

std::optional<absl::Time> ConnectionGuard::Admit(int socket) {
  const std::string peer = PeerOf(socket);
  const absl::Time now = MonotonicNow();
  const MutexLock lock(mutex_);
  const std::optional<absl::Time> begin = pace_.Begin(ClientAddress(peer), now);
  if (!begin.has_value()) ended_.push_back({.why = AbuseKind::kPace, .peer = peer});
  return begin;
}

void ConnectionGuard::Watch(int socket) {
  const std::optional<SocketIdentity> identity = IdentityOf(socket);
  if (!identity.has_value()) return;
  const std::string peer = PeerOf(socket);
  Connection connection{.socket = *identity,
                        .peer = peer,
                        .client = ClientAddress(peer),
                        .detector = {},
                        .bytes = {},
                        .moving = true,
                        .active = MonotonicNow()};
  epoll_event none_yet{.events = EPOLLONESHOT, .data = {.fd = socket}};
  epoll_ctl(arrivals_.number(), EPOLL_CTL_ADD, socket, &none_yet);
  const MutexLock lock(mutex_);
  if (static_cast<int64_t>(connections_.size()) >= limits_.connections) MakeRoom();
  // An earlier connection with this number is closed.
  connections_.insert_or_assign(socket, std::move(connection));
}

void ConnectionGuard::MakeRoom() {
  constexpr int64_t kPartAtOnce = 64;  // of all, so that a flood of connections does not search all for each
  std::unordered_map<std::string_view, int64_t> clients;
  for (const auto& [number, one] : connections_) ++clients[one.client];
  const auto largest = std::max_element(clients.begin(), clients.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::pair<absl::Time, int>> idle;
  for (const auto& [number, one] : connections_) {
    if (one.client == largest->first) idle.emplace_back(one.active, number);
  }
  std::sort(idle.begin(), idle.end());
  idle.resize(std::min<size_t>(idle.size(), 1 + limits_.connections / kPartAtOnce));
  const absl::Time now = MonotonicNow();
  for (const auto& [active, number] : idle) {
    const auto one = connections_.find(number);
    Sever(one->second, AbuseKind::kRoom, now, 0);
    connections_.erase(one);
  }
}

bool ConnectionGuard::Sever(Connection& connection, AbuseKind why, absl::Time now, int64_t open_calls) {
  if (!SeverConnection(connection.socket)) return false;  // already closed, or no descriptor available now
  ended_.push_back({.why = why,
                    .peer = connection.peer,
                    .received_bytes = connection.bytes.received,
                    .idle_bytes = connection.detector.idle_bytes(),
                    .open_calls = open_calls});
  if (why != AbuseKind::kRoom) pace_.Abused(connection.client, why, now);
  ReturnMemoryOf(connection, now);
  return true;
}

void ConnectionGuard::Poll() {
  std::vector<Ended> ended;
  int64_t open = 0;
  bool return_memory = false;
  {
    const MutexLock lock(mutex_);
    const absl::Time now = MonotonicNow();
    PollAll({.now = now, .cpu = CpuTime()});
    open = static_cast<int64_t>(connections_.size());
    if (now >= next_report_) ended.swap(ended_);
    if (!ended.empty()) next_report_ = now + kReportInterval;
    return_memory = ReturnsMemory(now);
  }
  if (!ended.empty()) handlers_.ended(ended);
  handlers_.open(open);
  if (return_memory) ReturnFreedMemory();
}

void ConnectionGuard::FindWoken() {
  std::array<epoll_event, 256> events{};
  int found = 0;
  do {
    found = epoll_wait(arrivals_.number(), events.data(), events.size(), 0);
    for (int i = 0; i < found; ++i) {
      const auto connection = connections_.find(events[i].data.fd);
      if (connection != connections_.end()) connection->second.moving = true;
    }
  } while (found == static_cast<int>(events.size()));
}

bool ConnectionGuard::Rest(const Connection& connection) {
  // If the number belongs to another socket by now, that one is not in the set, or its own first poll follows.
  epoll_event next{.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = connection.socket.number}};
  return epoll_ctl(arrivals_.number(), EPOLL_CTL_MOD, connection.socket.number, &next) == 0;
}

void ConnectionGuard::PollAll(const PollTime& time) {
  ++polls_;
  FindWoken();
  calls_.BeginPoll(connections_.size());
  for (auto next = connections_.begin(); next != connections_.end();) {
    Connection& connection = next->second;
    if (connection.paused_until.has_value() && *connection.paused_until <= time.now &&
        SetReading(connection.socket, true)) {
      connection.paused_until.reset();
    }
    const bool its_turn = connection.moving || (next->first + polls_) % kIdlePolls == 0;
    if (!its_turn || PollConnection(connection, time)) {
      ++next;
    } else {
      next = connections_.erase(next);
    }
  }
  EndCallsNotBegun(time.now);
  PaceRefusedCalls(time.now);
  EndIdleBytes(time.now);
}

bool ConnectionGuard::PollConnection(Connection& connection, const PollTime& time) {
  const std::optional<ConnectionBytes> bytes = ReadConnectionBytes(connection.socket);
  if (!bytes.has_value()) {
    if (connection.bytes.received > kNoticedBytes) ReturnMemoryOf(connection, time.now);
    return false;
  }
  if (connection.moving) {
    connection.moving = bytes->received != connection.bytes.received || bytes->unread > 0 || !Rest(connection);
  }
  received_since_count_ += bytes->received - connection.bytes.received;
  if (bytes->received != connection.bytes.received || bytes->taken != connection.bytes.taken) {
    connection.active = time.now;
  }
  connection.bytes = *bytes;
  std::optional<ConnectionCalls> calls;
  if (connection.detector.WantsCalls(*bytes)) calls = calls_.Read(connection.peer);
  const std::optional<AbuseKind> why = connection.detector.Judge(time, *bytes, calls, limits_);
  if (!why.has_value()) return true;
  return !Sever(connection, *why, time.now, calls.value_or(ConnectionCalls()).open);
}

void ConnectionGuard::EndCallsNotBegun(absl::Time now) {
  if (handlers_.begun == nullptr) return;
  // Counting takes 70 us, so it waits until there may be too many calls, and for a second at most.
  const int64_t may_be_open = open_at_count_ + received_since_count_ / kSmallestHead;
  if (may_be_open <= limits_.calls_not_begun && polls_ % kIdlePolls != 0) return;
  const int64_t open = calls_.CountOpen();
  open_at_count_ = open;
  received_since_count_ = 0;
  // These are counted as received already, and may begin calls once gRPC reads them.
  for (const auto& [number, one] : connections_) received_since_count_ += one.bytes.unread;
  most_calls_ = std::max(most_calls_, open);
  if (most_calls_ - open >= kNoticedCalls && return_memory_at_ == absl::InfiniteFuture()) {
    return_memory_at_ = now + kMemoryReturnDelay;
    most_calls_ = open;
  }
  if (open <= limits_.calls_not_begun || open - handlers_.begun() <= limits_.calls_not_begun) return;
  if (now < next_count_) return;
  std::vector<std::pair<int64_t, int>> not_begun;
  for (const auto& [number, one] : connections_) {
    const std::optional<ConnectionCalls> calls = calls_.Read(one.peer);
    // What a connection without any message has sent, but gRPC has not read, may be a thousand more.
    const bool may_begin = !calls.has_value() || calls->messages == 0;
    const int64_t count = (calls.has_value() ? calls->open - handlers_.begun_by(one.peer) : 0) +
                          (may_begin ? one.bytes.unread / kSmallestHead : 0);
    if (count > 0) not_begun.emplace_back(count, number);
  }
  SeverLargest(std::move(not_begun), limits_.calls_not_begun / 2, AbuseKind::kCalls, now);
  // gRPC destroys the calls of closed connections later. Until then this takes half of the thread's time.
  next_count_ = now + 2 * (MonotonicNow() - now);
}

void ConnectionGuard::PaceRefusedCalls(absl::Time now) {
  if (handlers_.refused == nullptr) return;
  const int64_t refused = handlers_.refused();
  const absl::Duration since = std::min(now - last_look_, absl::Seconds(1));
  const auto allowed = static_cast<int64_t>(static_cast<double>(limits_.refused_calls) * absl::ToDoubleSeconds(since));
  const bool too_many = refused - refused_at_look_ > allowed;
  if (!too_many && since < absl::Seconds(1)) return;
  const bool any = refused > refused_at_look_;
  refused_at_look_ = refused;
  last_look_ = now;
  std::erase_if(next_read_, [&](const auto& one) { return one.second <= now; });
  if (!any) return;
  struct Client {
    int64_t refused = 0;
    std::vector<std::pair<int64_t, Connection*>> connections = {};  // with their refused calls
  };
  std::unordered_map<std::string_view, Client> clients;
  for (auto& [number, one] : connections_) {
    const int64_t count = handlers_.take_refused_of(one.peer);
    if (count == 0) continue;
    Client& client = clients[one.client];
    client.refused += count;
    client.connections.emplace_back(count, &one);
  }
  for (const auto& [name, client] : clients) {
    if (client.refused <= allowed) continue;
    absl::Time& next = next_read_.try_emplace(std::string(name), now).first->second;
    for (const auto& [count, connection] : client.connections) {
      if (!SetReading(connection->socket, false)) continue;
      next += absl::Seconds(1) * static_cast<double>(count) / static_cast<double>(limits_.refused_calls);
      next = std::min(next, now + limits_.longest_pause);
      connection->paused_until = next;
    }
  }
}

void ConnectionGuard::EndIdleBytes(absl::Time now) {
  std::vector<std::pair<int64_t, int>> idle;
  for (const auto& [number, one] : connections_) {
    const int64_t bytes = one.detector.unanswered_bytes();
    if (bytes >= kNoticedIdleBytes) idle.emplace_back(bytes, number);
  }
  SeverLargest(std::move(idle), limits_.all_idle_bytes, AbuseKind::kBytes, now);
}

void ConnectionGuard::SeverLargest(std::vector<std::pair<int64_t, int>> connections, int64_t limit, AbuseKind why,
                                   absl::Time now) {
  int64_t total = 0;
  for (const auto& [amount, number] : connections) total += amount;
  if (total <= limit) return;
  std::sort(connections.rbegin(), connections.rend());
  for (const auto& [amount, number] : connections) {
    if (total <= limit) return;
    const auto one = connections_.find(number);
    if (!Sever(one->second, why, now, why == AbuseKind::kCalls ? amount : 0)) continue;
    connections_.erase(one);
    total -= amount;
  }
}

void ConnectionGuard::ReturnMemoryOf(const Connection& connection, absl::Time end) {
  closing_.push_back({connection.peer, end + kLongestClosing});
  // Later connections do not postpone it, since they may end continually.
  if (return_memory_at_ == absl::InfiniteFuture()) return_memory_at_ = end + kMemoryReturnDelay;
}

bool ConnectionGuard::ReturnsMemory(absl::Time now) {
  if (now < return_memory_at_) return false;
  const auto is_gone = [&](const Closing& one) { return now >= one.until || !calls_.Read(one.peer).has_value(); };
  closing_.erase(std::remove_if(closing_.begin(), closing_.end(), is_gone), closing_.end());
  return_memory_at_ = closing_.empty() ? absl::InfiniteFuture() : now + kMemoryReturnDelay;
  return true;
}

}  // namespace longshort::server
