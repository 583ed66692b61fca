#include "clients/cpp/sessions.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "base/thread.h"
#include "clients/cpp/failures.h"
#include "clients/cpp/running_call.h"

namespace longshort::client {
namespace {

// Number of concurrent moves. It hides the round trips of small sessions; a large session fills the connection alone.
constexpr size_t kAtOnce = 4;

// Retry interval where the server sends none, such as for a session in use.
constexpr absl::Duration kLookAgain = absl::Milliseconds(200);

// Limit of the server's retry delay: a full server names the time when a session expires, but sessions may end earlier.
constexpr absl::Duration kLongestWait = absl::Seconds(10);

// Returns one version for each fingerprint: versions with the same weights share their sessions.
absl::StatusOr<std::vector<v1::ModelSelector>> LanguageModels(Client& client) {
  LS_ASSIGN_OR_RETURN(const v1::ListModelsResponse response, client.ListModels());
  std::vector<v1::ModelSelector> models;
  std::set<std::pair<std::string, std::string>> known;
  for (const v1::Model& model : response.models()) {
    if (model.has_classifier() || !known.emplace(model.name(), model.fingerprint()).second) continue;
    models.push_back(SelectorOf(model));
  }
  return models;
}

struct Copied {
  int64_t tokens = 0;
  int64_t bytes = 0;
};

// Copies the session to `to` with the same id and owner. Returns nullopt if it has ended at `from`. Errors: those of
// both calls.
absl::StatusOr<std::optional<Copied>> Copy(Client& from, Client& to, const SessionOfModel& session) {
  v1::ExportSessionRequest request;
  *request.mutable_model() = session.model;
  request.set_session_id(session.session.session_id());
  request.set_owner(session.session.owner());
  v1::ImportBeginning beginning;
  *beginning.mutable_model() = session.model;
  beginning.set_session_id(session.session.session_id());
  beginning.set_keep_owner(true);

  Copied copied;
  absl::StatusOr<v1::ImportSessionResponse> imported = absl::UnknownError("nothing was exported");
  const absl::Status exported = from.ExportSession(request, [&](Client::NextPart next) {
    imported = to.ImportSession(beginning, [&](v1::SessionPart& part) {
      if (!next(part)) return false;
      copied.bytes += static_cast<int64_t>(part.data().size());
      return true;
    });
  });
  if (absl::IsNotFound(exported)) return std::nullopt;
  LS_RETURN_IF_ERROR(exported);
  LS_RETURN_IF_ERROR(imported.status());
  copied.tokens = imported->session_tokens();
  return copied;
}

// Copies the session and ends it at `from` as moved. Returns the bytes of its data; nullopt if it has ended meanwhile.
// Errors: those of the calls, and ABORTED if a call continued the session meanwhile; `from` then still has it.
absl::StatusOr<std::optional<int64_t>> Move(Client& from, Client& to, const SessionOfModel& session) {
  LS_ASSIGN_OR_RETURN(const std::optional<Copied> copied, Copy(from, to, session));
  if (!copied.has_value()) return std::nullopt;
  v1::CloseSessionRequest end;
  *end.mutable_model() = session.model;
  end.set_session_id(session.session.session_id());
  end.set_owner(session.session.owner());
  end.set_expected_tokens(copied->tokens);
  end.set_moved(true);
  absl::Status closed = from.CloseSession(end);
  if (closed.ok() || absl::IsNotFound(closed)) return copied->bytes;
  if (absl::IsFailedPrecondition(closed))
    closed = absl::AbortedError("a call continued the session while it was moved");
  if (absl::IsAborted(closed)) {
    // Removes the outdated copy, so that no call continues from it. If that fails, the next import replaces it.
    end.set_moved(false);
    to.CloseSession(end).IgnoreError();
  }
  return closed;
}

// Returns whether a retry may succeed.
bool MayBeTriedAgain(const absl::Status& status) {
  const ExitCode code = ExitCodeOf(status);
  if (code == ExitCode::kUnavailable) return MayPass(status);
  return code != ExitCode::kInvalid || absl::IsDataLoss(status);
}

absl::Duration WaitAfter(const absl::Status& status) {
  return std::min(RetryAfter(status).value_or(kLookAgain), kLongestWait);
}

class SessionDrain final {
 public:
  SessionDrain(Client& from, Client& to, const DrainOptions& options) : from_(from), to_(to), options_(options) {}

  absl::StatusOr<DrainResult> Run() {
    const absl::Time begun = absl::Now();
    absl::Notification over;
    Thread clock;
    LS_RETURN_IF_ERROR(clock.Start("the thread that ends the drain", [&] {
      if (!over.WaitForNotificationWithTimeout(options_.timeout)) End();
    }));
    absl::StatusOr<DrainResult> result = MoveUntilNoneIsLeft();
    over.Notify();
    if (result.ok()) result->elapsed = absl::Now() - begun;
    return result;
  }

 private:
  struct Failure {
    absl::Status status;
    // Time of the next attempt; InfiniteFuture if a retry cannot succeed.
    absl::Time again;
  };
  using Name = std::tuple<std::string, std::string, std::string>;  // model, owner, session

  static Name NameOf(const SessionOfModel& session) {
    return {session.model_name(), session.session.owner(), session.session.session_id()};
  }

  // Ends the drain at the timeout or on cancellation.
  void End() {
    {
      // Set before cancelling, so that a cancelled call sees it.
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.NotifyAll();
    from_.Cancel();
    to_.Cancel();
  }

  // Waits until `time` or the end of the drain. Returns false if the drain has ended.
  bool WaitUntil(absl::Time time) {
    const MutexLock lock(mutex_);
    return !changed_.WaitFor(mutex_, time - absl::Now(),
                             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; });
  }

  absl::StatusOr<DrainResult> MoveUntilNoneIsLeft() {
    std::vector<SessionOfModel> sessions;
    absl::Status unknown = absl::DeadlineExceededError(
        "the drain ended before a list of the server's sessions showed that none is left; drain again");
    for (bool goes_on = true; goes_on;) {
      absl::StatusOr<std::vector<SessionOfModel>> listed = List();
      if (!listed.ok() && (sessions.empty() || WaitUntil(absl::InfinitePast()))) return listed.status();
      if (!listed.ok()) {  // the last list has the sessions that are left
        unknown = listed.status();
        break;
      }
      sessions = *std::move(listed);
      if (std::none_of(sessions.begin(), sessions.end(), [this](const auto& session) { return MayMove(session); })) {
        unknown = absl::OkStatus();
        break;
      }
      options_.on_sessions(static_cast<int64_t>(sessions.size()));
      LS_RETURN_IF_ERROR(MoveSome(sessions));
      goes_on = WaitUntil(NextTry(sessions));
    }
    const MutexLock lock(mutex_);
    for (SessionOfModel& session : sessions) {
      const auto failure = failures_.find(NameOf(session));
      if (failure != failures_.end()) result_.left.push_back({std::move(session), failure->second.status});
    }
    if (result_.left.empty() && !unknown.ok()) return unknown;
    return std::move(result_);
  }

  // Lists all sessions; retries temporary failures.
  absl::StatusOr<std::vector<SessionOfModel>> List() {
    absl::StatusOr<std::vector<SessionOfModel>> sessions;
    do {
      sessions = ListSessions(from_, options_.model, /*all_owners=*/true);
    } while (!sessions.ok() && MayBeTriedAgain(sessions.status()) && !CancelledHere(sessions.status()) &&
             WaitUntil(absl::Now() + WaitAfter(sessions.status())));
    return sessions;
  }

  // Moves the sessions that are idle and due. Errors: RESOURCE_EXHAUSTED if no thread can be started.
  absl::Status MoveSome(std::vector<SessionOfModel> sessions) {
    {
      const MutexLock lock(mutex_);
      sessions.erase(std::remove_if(sessions.begin(), sessions.end(),
                                    [&](const SessionOfModel& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                      return MustWait(session, absl::Now());
                                    }),
                     sessions.end());
    }
    std::stable_sort(sessions.begin(), sessions.end(), [](const SessionOfModel& a, const SessionOfModel& b) {
      return a.session.idle_seconds() < b.session.idle_seconds();
    });
    std::atomic<size_t> next = 0;
    std::vector<Thread> movers(std::min(kAtOnce, sessions.size()));
    for (Thread& mover : movers) {
      LS_RETURN_IF_ERROR(mover.Start("the threads that move sessions", [&] {
        for (size_t i = next++; i < sessions.size(); i = next++) MoveOne(sessions[i]);
      }));
    }
    return absl::OkStatus();
  }

  bool MustWait(const SessionOfModel& session, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (session.session.in_use()) {
      failures_[NameOf(session)] = {absl::AbortedError("a call is using the session"), now + kLookAgain};
    }
    const auto failure = failures_.find(NameOf(session));
    return failure != failures_.end() && failure->second.again > now;
  }

  void MoveOne(const SessionOfModel& session) {
    absl::StatusOr<std::optional<int64_t>> bytes = absl::CancelledError("the drain ended before the session was moved");
    MutexLock lock(mutex_);
    while (!ended_) {
      const int64_t done = done_;
      ++moving_;
      lock.Unlock();
      bytes = Move(from_, to_, session);
      lock.Lock();
      --moving_;
      if (!absl::IsResourceExhausted(bytes.status()) || (moving_ == 0 && done_ == done)) break;
      // The other moves may occupy the memory; it may become free when one of them ends.
      const auto may_have_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_ || done_ != done; };
      changed_.WaitFor(mutex_, WaitAfter(bytes.status()), may_have_room);
    }
    ++done_;
    changed_.NotifyAll();
    Note(session, bytes);
    lock.Unlock();
    if (CancelledHere(bytes.status())) End();  // the user interrupted it
  }

  // Records the result.
  void Note(const SessionOfModel& session, const absl::StatusOr<std::optional<int64_t>>& bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (bytes.ok()) {
      failures_.erase(NameOf(session));
      if (!bytes->has_value()) return;
      ++result_.moved;
      result_.bytes += **bytes;
      options_.on_moved();
      return;
    }
    const absl::Status& status = bytes.status();
    const auto [failure, is_first] = failures_.try_emplace(NameOf(session));
    // The deadline cancels the last attempt; the status of the attempt before it says more.
    if (is_first || !absl::IsCancelled(status)) failure->second.status = status;
    failure->second.again = MayBeTriedAgain(status) ? absl::Now() + WaitAfter(status) : absl::InfiniteFuture();
  }

  // Returns whether the session may still be moved.
  bool MayMove(const SessionOfModel& session) {
    const MutexLock lock(mutex_);
    const auto failure = failures_.find(NameOf(session));
    return failure == failures_.end() || failure->second.again < absl::InfiniteFuture();
  }

  // Returns the time of the next attempt; InfinitePast if there is none to wait for.
  absl::Time NextTry(const std::vector<SessionOfModel>& sessions) {
    const MutexLock lock(mutex_);
    absl::Time next = absl::InfiniteFuture();
    for (const SessionOfModel& session : sessions) {
      const auto failure = failures_.find(NameOf(session));
      if (failure != failures_.end()) next = std::min(next, failure->second.again);
    }
    // All were moved; new sessions may exist.
    return next == absl::InfiniteFuture() ? absl::InfinitePast() : next;
  }

  Client& from_;
  Client& to_;
  const DrainOptions& options_;

  Mutex mutex_;
  ConditionVariable changed_;  // ended_ or done_
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  int moving_ ABSL_GUARDED_BY(mutex_) = 0;    // sessions being moved
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;  // number of finished moves
  DrainResult result_ ABSL_GUARDED_BY(mutex_);
  std::map<Name, Failure> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string SessionOfModel::model_name() const { return absl::StrCat(model.name(), "/", model.version()); }

absl::StatusOr<std::vector<SessionOfModel>> ListSessions(Client& client, const v1::ModelSelector& model,
                                                         bool all_owners) {
  std::vector<v1::ModelSelector> models = {model};
  if (model.name().empty()) {
    LS_ASSIGN_OR_RETURN(models, LanguageModels(client));
  } else if (model.version() == 0) {
    LS_ASSIGN_OR_RETURN(const v1::Model newest, client.GetModel(model));
    models.front().set_version(newest.version());
  }
  std::vector<SessionOfModel> sessions;
  for (const v1::ModelSelector& each : models) {
    v1::ListSessionsRequest request;
    *request.mutable_model() = each;
    request.set_all_owners(all_owners);
    do {
      LS_ASSIGN_OR_RETURN(v1::ListSessionsResponse page, client.ListSessions(request));
      for (v1::ListedSession& session : *page.mutable_sessions()) sessions.push_back({each, std::move(session)});
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
  }
  return sessions;
}

absl::StatusOr<DrainResult> DrainSessions(Client& from, Client& to, const DrainOptions& options) {
  return SessionDrain(from, to, options).Run();
}

}  // namespace longshort::client
