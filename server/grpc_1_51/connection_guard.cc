#include "server/grpc_1_51/connection_guard.h"

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/freed_memory.h"

namespace longshort::server {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(250);
// One in so many looks is at a connection that does nothing.
constexpr int64_t kIdleLooks = 4;
// How often it is said at the most that connections were ended.
constexpr absl::Duration kLogSeveredAgain = absl::Seconds(1);
// gRPC takes so long to take a connection of many calls apart; then its memory goes back to the system, which the
// allocator would keep for the models' batches (models/layers/kept_memory.h).
constexpr absl::Duration kTakenApart = absl::Seconds(2);
// Of a connection that has sent so much some may be kept, though it ended by itself.
constexpr int64_t kNoticedBytes = 256 * 1024;

}  // namespace

absl::Status ConnectionGuard::Start() {
  return thread_.Start("the thread that guards connections", {.interval = kInterval, .run = [this] { Look(); }});
}

void ConnectionGuard::Watch(int socket) {
  const std::optional<SocketIdentity> identity = IdentityOf(socket);
  if (!identity.has_value()) return;
  Connection connection{.socket = *identity, .peer = PeerOf(socket), .conduct = {}, .bytes = {}, .moving = true};
  const std::lock_guard lock(mutex_);
  // Whoever had the number before is closed.
  connections_.insert_or_assign(socket, std::move(connection));
}

void ConnectionGuard::Look() {
  std::unique_lock lock(mutex_);
  const absl::Time now = MonotonicNow();
  LookAtAll(now);
  Say(now, lock);
  if (now < give_back_) return;
  give_back_ = absl::InfiniteFuture();
  if (last_end_ + kTakenApart > now) GiveBackAfter(last_end_);
  lock.unlock();
  ReturnFreedMemory();
}

void ConnectionGuard::LookAtAll(absl::Time now) {
  ++looks_;
  calls_.BeginLook(connections_.size());
  for (auto next = connections_.begin(); next != connections_.end();) {
    Connection& connection = next->second;
    const bool its_turn = connection.moving || (next->first + looks_) % kIdleLooks == 0;
    if (!its_turn || LookAt(connection, now)) {
      ++next;
    } else {
      next = connections_.erase(next);
    }
  }
}

bool ConnectionGuard::LookAt(Connection& connection, absl::Time now) {
  const std::optional<ConnectionBytes> bytes = ReadConnectionBytes(connection.socket);
  if (!bytes.has_value()) {
    if (connection.bytes.received > kNoticedBytes) GiveBackAfter(now);
    return false;
  }
  connection.moving = bytes->received != connection.bytes.received || bytes->unread > 0;
  connection.bytes = *bytes;
  std::optional<ConnectionCalls> calls;
  if (connection.conduct.WantsCalls(*bytes)) calls = calls_.Read(connection.peer);
  const std::optional<AbuseKind> why = connection.conduct.Judge(now, *bytes, calls, limits_);
  if (!why.has_value()) return true;
  if (!SeverConnection(connection.socket)) return true;  // closed already, or there is no descriptor for it now
  ended_.push_back({.why = *why,
                    .peer = connection.peer,
                    .received_bytes = bytes->received,
                    .idle_bytes = connection.conduct.idle_bytes(),
                    .open_calls = calls.value_or(ConnectionCalls()).open});
  GiveBackAfter(now);
  return false;
}

void ConnectionGuard::GiveBackAfter(absl::Time end) {
  last_end_ = end;
  // Not put off by the next one: they may come without end.
  if (give_back_ == absl::InfiniteFuture()) give_back_ = end + kTakenApart;
}

void ConnectionGuard::Say(absl::Time now, std::unique_lock<std::mutex>& lock) {
  std::vector<Ended> ended;
  if (now >= say_again_) ended.swap(ended_);
  const auto open = static_cast<int64_t>(connections_.size());
  lock.unlock();
  if (!ended.empty()) {
    handlers_.ended(ended);
    say_again_ = now + kLogSeveredAgain;
  }
  handlers_.open(open);
  lock.lock();
}

}  // namespace longshort::server
