#include "clients/cpp/session_drain.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/status_macros.h"
#include "clients/cpp/failures.h"

namespace longshort {
namespace {

// Enough that small sessions do not wait for each other's round trips; large ones fill the way by themselves.
constexpr int kAtOnce = 4;

// How often a server is asked again about what it said no time for: whether a call is over, for instance.
constexpr absl::Duration kLookAgain = absl::Milliseconds(200);

// A server without room for more sessions says when one of its own will end, which may be closed long before.
constexpr absl::Duration kLongestWait = absl::Seconds(10);

// Calls that began as others were cancelled are cancelled so much later.
constexpr absl::Duration kCancelAgain = absl::Milliseconds(20);

// Whether another try may end otherwise.
bool MayBeTriedAgain(const absl::Status& status) {
  const ExitCode code = ExitCodeOf(status);
  if (code == ExitCode::kUnavailable) return MayPass(status);
  return code != ExitCode::kRefused || absl::IsDataLoss(status);
}

absl::Duration WaitAfter(const absl::Status& status) {
  return std::min(RetryAfter(status).value_or(kLookAgain), kLongestWait);
}

}  // namespace

SessionDrain::Name SessionDrain::NameOf(const SessionOfModel& session) {
  return {session.model_name(), session.session.owner(), session.session.session_id()};
}

absl::StatusOr<SessionDrain::Result> SessionDrain::Run() {
  std::thread watch([this] { Watch(); });
  absl::StatusOr<Result> result = MoveUntilNoneIsLeft();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  watch.join();
  if (result.ok()) result->elapsed = absl::Now() - begun_;
  return result;
}

void SessionDrain::Watch() {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return ended_ || over_; };
  if (timeout_ == absl::InfiniteDuration()) {
    changed_.wait(lock, is_over);
  } else {
    changed_.wait_until(lock, absl::ToChronoTime(begun_ + timeout_), is_over);
  }
  ended_ = true;
  changed_.notify_all();
  while (!over_) {
    lock.unlock();
    from_.Cancel();
    to_.Cancel();
    lock.lock();
    changed_.wait_for(lock, absl::ToChronoMilliseconds(kCancelAgain), [this] { return over_; });
  }
}

absl::StatusOr<SessionDrain::Result> SessionDrain::MoveUntilNoneIsLeft() {
  std::vector<SessionOfModel> sessions;
  for (;;) {
    absl::StatusOr<std::vector<SessionOfModel>> listed = List();
    if (!listed.ok() && !(ended() && !sessions.empty())) return listed.status();
    if (!listed.ok()) break;  // what was left before is left
    sessions = *std::move(listed);
    if (std::none_of(sessions.begin(), sessions.end(), [this](const auto& session) { return MayMove(session); })) break;
    observer_.on_sessions(static_cast<int64_t>(sessions.size()));
    MoveSome(sessions);
    if (ended()) break;
    WaitUntil(NextTry(sessions));
  }
  const std::lock_guard lock(mutex_);
  for (SessionOfModel& session : sessions) {
    const auto failure = failures_.find(NameOf(session));
    if (failure == failures_.end()) continue;
    result_.left.push_back({std::move(session), failure->second.status});
  }
  return std::move(result_);
}

absl::StatusOr<std::vector<SessionOfModel>> SessionDrain::List() {
  for (;;) {
    absl::StatusOr<std::vector<SessionOfModel>> sessions = ListSessions(from_, model_, /*all_owners=*/true);
    if (sessions.ok() || !MayBeTriedAgain(sessions.status()) || CancelledHere(sessions.status())) return sessions;
    WaitUntil(absl::Now() + WaitAfter(sessions.status()));
    if (ended()) return sessions;
  }
}

void SessionDrain::MoveSome(std::vector<SessionOfModel> sessions) {
  const absl::Time now = absl::Now();
  const auto waits = [&](const SessionOfModel& session) {
    if (session.session.in_use()) {
      failures_[NameOf(session)] = {absl::AbortedError("a call uses it"), now + kLookAgain};
      return true;
    }
    const auto failure = failures_.find(NameOf(session));
    return failure != failures_.end() && failure->second.again > now;
  };
  {
    const std::lock_guard lock(mutex_);
    sessions.erase(std::remove_if(sessions.begin(), sessions.end(), waits), sessions.end());
  }
  std::stable_sort(sessions.begin(), sessions.end(), [](const SessionOfModel& a, const SessionOfModel& b) {
    return a.session.idle_seconds() < b.session.idle_seconds();
  });
  std::atomic<size_t> next = 0;
  const auto move = [&] {
    for (size_t i = next++; i < sessions.size(); i = next++) MoveOne(sessions[i]);
  };
  std::vector<std::thread> movers;
  for (int i = 0; i < std::min(kAtOnce, static_cast<int>(sessions.size())); ++i) movers.emplace_back(move);
  for (std::thread& mover : movers) mover.join();
}

void SessionDrain::MoveOne(const SessionOfModel& session) {
  std::unique_lock lock(mutex_);
  MovedSession moved{.status = absl::CancelledError("its turn did not come")};
  while (!ended_) {
    const int64_t done = done_;
    ++moving_;
    lock.unlock();
    moved = MoveSession(from_, to_, session);
    lock.lock();
    --moving_;
    if (!absl::IsResourceExhausted(moved.status) || (moving_ == 0 && done_ == done)) break;
    // The room may be that of the others that move, which is free when one of them is done.
    changed_.wait_for(lock, absl::ToChronoNanoseconds(WaitAfter(moved.status)),
                      [&] { return ended_ || done_ != done; });
  }
  ++done_;
  changed_.notify_all();
  if (moved.status.ok()) {
    failures_.erase(NameOf(session));
    if (!moved.moved) return;
    ++result_.moved;
    result_.bytes += moved.bytes;
    observer_.on_moved();
    return;
  }
  absl::Time again = absl::InfiniteFuture();
  if (MayBeTriedAgain(moved.status)) again = absl::Now() + WaitAfter(moved.status);
  const auto [failure, is_first] = failures_.try_emplace(NameOf(session));
  // A try that the end of the time cuts off, or does not let begin, tells less than the one before it.
  if (is_first || !absl::IsCancelled(moved.status)) failure->second.status = moved.status;
  failure->second.again = again;
  if (CancelledHere(moved.status)) {  // by somebody who does not want to wait
    ended_ = true;
    changed_.notify_all();
  }
}

bool SessionDrain::MayMove(const SessionOfModel& session) {
  const std::lock_guard lock(mutex_);
  const auto failure = failures_.find(NameOf(session));
  return failure == failures_.end() || failure->second.again < absl::InfiniteFuture();
}

absl::Time SessionDrain::NextTry(const std::vector<SessionOfModel>& sessions) {
  const std::lock_guard lock(mutex_);
  absl::Time next = absl::InfiniteFuture();
  for (const SessionOfModel& session : sessions) {
    const auto failure = failures_.find(NameOf(session));
    if (failure != failures_.end()) next = std::min(next, failure->second.again);
  }
  // Where all are gone, others may have come.
  return next == absl::InfiniteFuture() ? absl::InfinitePast() : next;
}

void SessionDrain::WaitUntil(absl::Time time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(time - absl::Now()), [this] { return ended_; });
}

bool SessionDrain::ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace longshort
