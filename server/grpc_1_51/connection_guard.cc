#include "server/grpc_1_51/connection_guard.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/freed_memory.h"

namespace longshort::server {
namespace {

// Until the next poll, a connection can make gRPC allocate some hundred megabytes per second.
constexpr absl::Duration kInterval = absl::Milliseconds(100);
// An idle connection is polled at every tenth poll.
constexpr int64_t kIdlePolls = 10;
// Minimum interval between reports of closed connections.
constexpr absl::Duration kReportInterval = absl::Seconds(1);
// gRPC destroys a connection with many calls within this time. Then its memory is returned to the system; otherwise
// the allocator would keep it, as it does for the models' batches (models/layers/kept_memory.h).
constexpr absl::Duration kMemoryReturnDelay = absl::Seconds(2);
// A connection that sent at least this much may leave freed memory behind, even if it ended normally.
constexpr int64_t kNoticedBytes = 256 * 1024;

}  // namespace

absl::Status ConnectionGuard::Start() {
  return thread_.Start("the thread that guards connections", {.interval = kInterval, .run = [this] { Poll(); }});
}

void ConnectionGuard::Watch(int socket) {
  const std::optional<SocketIdentity> identity = IdentityOf(socket);
  if (!identity.has_value()) return;
  Connection connection{.socket = *identity, .peer = PeerOf(socket), .detector = {}, .bytes = {}, .moving = true};
  const MutexLock lock(mutex_);
  // An earlier connection with this number is closed.
  connections_.insert_or_assign(socket, std::move(connection));
}

void ConnectionGuard::Poll() {
  std::vector<Ended> ended;
  int64_t open = 0;
  bool return_memory = false;
  {
    const MutexLock lock(mutex_);
    const absl::Time now = MonotonicNow();
    PollAll(now);
    open = static_cast<int64_t>(connections_.size());
    if (now >= next_report_) ended.swap(ended_);
    if (!ended.empty()) next_report_ = now + kReportInterval;
    return_memory = now >= return_memory_at_;
    if (return_memory) {
      return_memory_at_ = absl::InfiniteFuture();
      if (last_end_ + kMemoryReturnDelay > now) ReturnMemoryAfter(last_end_);
    }
  }
  if (!ended.empty()) handlers_.ended(ended);
  handlers_.open(open);
  if (return_memory) ReturnFreedMemory();
}

void ConnectionGuard::PollAll(absl::Time now) {
  ++polls_;
  calls_.BeginPoll(connections_.size());
  for (auto next = connections_.begin(); next != connections_.end();) {
    Connection& connection = next->second;
    const bool its_turn = connection.moving || (next->first + polls_) % kIdlePolls == 0;
    if (!its_turn || PollConnection(connection, now)) {
      ++next;
    } else {
      next = connections_.erase(next);
    }
  }
}

bool ConnectionGuard::PollConnection(Connection& connection, absl::Time now) {
  const std::optional<ConnectionBytes> bytes = ReadConnectionBytes(connection.socket);
  if (!bytes.has_value()) {
    if (connection.bytes.received > kNoticedBytes) ReturnMemoryAfter(now);
    return false;
  }
  connection.moving = bytes->received != connection.bytes.received || bytes->unread > 0;
  connection.bytes = *bytes;
  std::optional<ConnectionCalls> calls;
  if (connection.detector.WantsCalls(*bytes)) calls = calls_.Read(connection.peer);
  const std::optional<AbuseKind> why = connection.detector.Judge(now, *bytes, calls, limits_);
  if (!why.has_value()) return true;
  if (!SeverConnection(connection.socket)) return true;  // already closed, or no descriptor available now
  ended_.push_back({.why = *why,
                    .peer = connection.peer,
                    .received_bytes = bytes->received,
                    .idle_bytes = connection.detector.idle_bytes(),
                    .open_calls = calls.value_or(ConnectionCalls()).open});
  ReturnMemoryAfter(now);
  return false;
}

void ConnectionGuard::ReturnMemoryAfter(absl::Time end) {
  last_end_ = end;
  // Later connections do not postpone it, since they may end continually.
  if (return_memory_at_ == absl::InfiniteFuture()) return_memory_at_ = end + kMemoryReturnDelay;
}

}  // namespace longshort::server
