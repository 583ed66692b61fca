// Conversations that the server remembers between calls. A store belongs to the engine of one language model, or to
// several engines of the same weights when one replaces another.
//
// A session consists of the tokens of its conversation, and a hint where their cache pages are parked.
// - The hint may be stale. Then the engine reads the tokens again.
// - Only the engine that parked the pages can use the hint.
// - The store notifies that engine when the pages are no longer needed (SessionPages).
// The key of a session includes its client: two clients may use the same id for different sessions.
//
//   Open -> Lease -> Commit      the call succeeded: the session continues from its end
//               \--> (destroyed) the call failed: the session is as before; a new session is removed
//
// A session ends when it is closed, or when it has been idle for its time to live. A failed call counts as a use.
// - No call finds an expired session. The next call of any kind, or EndExpired, frees what it holds.
// - The store remembers the ids of the sessions that expired last, and of those that moved to another server. So a late
//   client gets an error and does not start a new conversation by accident.
// - The id of a session that was closed otherwise can be used again at once.
//
// Anonymous clients count as one client, because the server cannot distinguish them. The limits per client do not apply
// to them: all of them together would share one client's limit.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "core/cache/cache_grid.h"
#include "core/session/session.h"

namespace longshort::core {

struct SessionKey {
  std::string client;  // "" for anonymous ones, who share their sessions
  std::string id;
  // No part of the key: the client that a new session counts for, if `client` is a name that it chose. Empty: `client`.
  std::string account = {};

  const std::string& counted() const { return account.empty() ? client : account; }
  friend bool operator<(const SessionKey& a, const SessionKey& b) {
    return std::tie(a.client, a.id) < std::tie(b.client, b.id);
  }
};

// The state of a session after a call.
struct SessionState {
  // All tokens of the conversation. The model has not read the last one yet.
  std::vector<int32_t> tokens;
  // The parked sequence with the rows of all tokens except the last one, until its pages are evicted.
  std::optional<ParkedPlace> parked = std::nullopt;
  // If the last call ended early: the number of tokens before it. The next call may continue from there, or from any
  // token after it, because its client may have received less than was delivered.
  std::optional<int64_t> partial_from = std::nullopt;
};

// How a session is closed.
struct SessionClosing {
  // The session continues on another server: its id is remembered.
  bool moved = false;
  // The number of tokens that it must hold.
  std::optional<int64_t> expected_tokens = std::nullopt;
};

// `parent`: a budget of bytes; null for none.
inline std::shared_ptr<ClientBudgets> SessionTokenBudgets(int64_t tokens, std::shared_ptr<Budget> parent = nullptr) {
  return std::make_shared<ClientBudgets>(
      std::make_shared<Budget>(tokens, Budget::Names{.holders = "the sessions", .unit = "tokens"}, std::move(parent),
                               static_cast<int64_t>(sizeof(int32_t))),
      Budget::Names{.holders = "this client's sessions", .unit = "tokens"});
}

// Thread-safe.
class SessionStore final {
  using Tokens = std::shared_ptr<const std::vector<int32_t>>;

 public:
  struct Options {
    absl::Duration time_to_live = absl::Minutes(30);
    // Maximum number of sessions, of all clients and of one client. The store refuses to create more.
    int64_t max_sessions = 65536;
    int64_t max_sessions_per_client = 16384;
    // Maximum number of tokens in the sessions of each client, and of all clients, of all stores that share the
    // budgets. When it is reached, Open refuses all of them, so that none grows. 2^26 tokens take 256 MiB.
    std::shared_ptr<ClientBudgets> tokens = SessionTokenBudgets(int64_t{1} << 26);
    // Maximum number of ended sessions whose ids are remembered. They have at most an eighth of `tokens`.
    int64_t max_remembered = 65536;
    // What a session takes beside its tokens, and a remembered id, with keys of usual lengths; counted in `tokens`. No
    // client has the ids.
    int64_t session_cost = 768 / static_cast<int64_t>(sizeof(int32_t));
    int64_t remembered_cost = 576 / static_cast<int64_t>(sizeof(int32_t));
  };

  // Exclusive use of a session by one call of one engine, until destroyed. The store must outlive it.
  class Lease final {
   public:
    Lease(Lease&& other) noexcept
        : store_(std::exchange(other.store_, nullptr)),
          key_(std::move(other.key_)),
          tokens_(std::move(other.tokens_)),
          count_(other.count_),
          parked_(other.parked_),
          partial_from_(other.partial_from_),
          pages_(std::move(other.pages_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    const SessionKey& key() const { return key_; }
    // Whether it was not committed yet.
    bool held() const { return store_ != nullptr; }
    // The tokens after the previous call; empty for a new session.
    absl::Span<const int32_t> tokens() const { return absl::MakeConstSpan(*tokens_).first(count_); }
    SharedTokens shared_tokens() const { return {.owner = tokens_, .tokens = tokens()}; }
    // Where the previous call parked them; nullopt if that was in another engine.
    const std::optional<ParkedPlace>& parked() const { return parked_; }
    // SessionState::partial_from.
    const std::optional<int64_t>& partial_from() const { return partial_from_; }
    // Continues from the first `tokens` of the session. The session itself changes only by Commit.
    void Shorten(int64_t tokens) {
      count_ = static_cast<size_t>(tokens);
      parked_.reset();
    }
    // Sets the session's state, which is parked in the engine that opened the lease. Ends the lease. Releases the
    // previous place, in whichever engine it is.
    void Commit(SessionState state);

   private:
    friend class SessionStore;
    Lease(SessionStore* store, SessionKey key, Tokens tokens, std::optional<ParkedPlace> parked,
          std::optional<int64_t> partial_from, std::weak_ptr<SessionPages> pages)
        : store_(store),
          key_(std::move(key)),
          tokens_(std::move(tokens)),
          count_(tokens_->size()),
          parked_(parked),
          partial_from_(partial_from),
          pages_(std::move(pages)) {}

    SessionStore* store_;
    SessionKey key_;
    Tokens tokens_;
    size_t count_;
    std::optional<ParkedPlace> parked_;
    std::optional<int64_t> partial_from_;
    std::weak_ptr<SessionPages> pages_;
  };

  // `clock` must outlive the store; `observer` may be null.
  SessionStore(const Clock& clock, const Options& options, std::unique_ptr<SessionObserver> observer = nullptr)
      : clock_(clock),
        options_(options),
        observer_(std::move(observer)),
        time_to_live_(options.time_to_live),
        of_remembered_(options.tokens->all()) {}

  // Applies to existing sessions, too.
  void SetTimeToLive(absl::Duration time_to_live);

  // Below, `pages` belongs to the calling engine; null if it needs no notification of released places.

  // Opens the session for a call that adds at least `more` tokens to it, which count from now on. Creates one under
  // this key unless it `must_exist`. Errors:
  // - ABORTED while another call has it;
  // - NOT_FOUND if it has ended, or must exist and does not;
  // - RESOURCE_EXHAUSTED if there are too many sessions, or they hold too many tokens. The Refusal says to retry when
  //   the session that has been idle longest expires, but within a minute, because a session may be closed earlier. Its
  //   queue depth is 0, because no work waits for a session.
  absl::StatusOr<Lease> Open(const SessionKey& key, bool must_exist,
                             const std::shared_ptr<SessionPages>& pages = nullptr, int64_t more = 0);

  // Opens an existing session for a call that does not change it. The limits do not apply.
  // Errors: NOT_FOUND, ABORTED as Open.
  absl::StatusOr<Lease> OpenToRead(const SessionKey& key, const std::shared_ptr<SessionPages>& pages = nullptr);

  // Creates a session from `state`. An existing session whose tokens are a proper prefix of these continues to them.
  // Errors, all of which leave the store unchanged:
  // - ALREADY_EXISTS if there is another session. HoldsAllOf says whether that one has all of these tokens;
  // - ABORTED while another call has a session that could continue to these tokens;
  // - RESOURCE_EXHAUSTED as Open, and if the tokens exceed the limits.
  absl::Status Import(const SessionKey& key, SessionState state, const std::shared_ptr<SessionPages>& pages = nullptr);
  // The status that Import would return now for a session of these tokens.
  absl::Status CheckImport(const SessionKey& key, const std::vector<int32_t>& tokens);

  // Maximum number of tokens of all sessions, and so of any one.
  int64_t max_tokens() const { return options_.tokens->all()->capacity(); }

  // Ends a session. Unless it moved, its id can be used again at once. Errors: NOT_FOUND, ABORTED; FAILED_PRECONDITION
  // if it does not hold the expected number of tokens.
  absl::Status Close(const SessionKey& key, const SessionClosing& closing = {});

  // An entry of List.
  struct Listed {
    SessionKey key;
    int64_t tokens = 0;
    absl::Duration idle = absl::ZeroDuration();  // since a call had it
    bool in_use = false;
  };
  struct Page {
    std::vector<Listed> sessions;    // by key
    std::optional<SessionKey> next;  // behind which the next page begins; none after the last page
  };
  // Lists the sessions of `client`, or of all clients, whose keys are greater than `after`. Visits `max` sessions.
  Page List(const std::optional<std::string>& client, const std::optional<SessionKey>& after, int max);

  // Frees what expired sessions hold, for a bounded number of them. Returns by when to call it again: now if
  // more sessions have expired, InfiniteFuture if no session is idle.
  absl::Time EndExpired();

  struct Counts {
    int64_t sessions = 0;
    int64_t tokens = 0;
  };
  // The live sessions, and the expired ones that were not freed yet.
  Counts counts();

 private:
  struct Session {
    Tokens tokens = std::make_shared<const std::vector<int32_t>>();
    std::optional<ParkedPlace> parked;
    std::optional<int64_t> partial_from;
    std::weak_ptr<SessionPages> pages;  // that `parked` is a place of
    bool leased = false;
    bool is_new = true;                                          // never committed
    int64_t charge = 0;                                          // what its client has taken for it
    std::multimap<absl::Time, SessionKey>::iterator idle_since;  // of idle_, unless leased
  };
  using Sessions = std::map<SessionKey, Session>;
  struct ReleasedPlace {
    std::weak_ptr<SessionPages> pages;
    ParkedPlace place;
  };
  // Holds the mutex. After it unlocks, notifies engines of the places that were released meanwhile.
  class ABSL_SCOPED_LOCKABLE Visit final {
   public:
    explicit Visit(SessionStore& store) ABSL_EXCLUSIVE_LOCK_FUNCTION(store.mutex_)
        : store_(store), lock_(store.mutex_) {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() ABSL_UNLOCK_FUNCTION();

   private:
    SessionStore& store_;
    MutexLock lock_;
  };

  // Ends as many expired sessions as one call should wait for.
  void EndSomeExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The live session of this key.
  Sessions::iterator Find(const SessionKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends an idle session that has expired.
  void End(Sessions::iterator session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNew(const SessionKey& key, const std::vector<int32_t>& tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether an existing session may continue to these tokens.
  absl::Status CheckContinues(const SessionKey& key, const Session& session, const std::vector<int32_t>& tokens) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the limits allow one more session, of this many tokens.
  absl::Status CheckRoom(const std::string& client, int64_t tokens) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the limits are not reached, and allow this many additional tokens.
  absl::Status CheckTokens(const std::string& client, int64_t tokens) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Budget> BudgetOf(const std::string& client) const;
  absl::Status NotFound(const SessionKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lease MakeLease(Sessions::iterator session, const std::shared_ptr<SessionPages>& pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(const std::string& what, int64_t value, int64_t limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Sessions::iterator Add(const SessionKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(Sessions::iterator session, SessionState state, std::weak_ptr<SessionPages> pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleasePages(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeIdle(Sessions::iterator session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Sessions::iterator session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnded(const Session& session) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEnded(const SessionKey& key, bool moved) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveEnded(const SessionKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Charges the session's client with this many tokens for it.
  void SetCharge(Sessions::iterator session, int64_t charge) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Release(Lease& lease);

  const Clock& clock_;
  const Options options_;
  const std::unique_ptr<SessionObserver> observer_;
  Mutex mutex_;
  absl::Duration time_to_live_ ABSL_GUARDED_BY(mutex_);
  Sessions sessions_ ABSL_GUARDED_BY(mutex_);
  // Those not leased, by the end of their last use.
  std::multimap<absl::Time, SessionKey> idle_ ABSL_GUARDED_BY(mutex_);
  struct Client {
    int64_t sessions = 0;
    Budget::Share tokens;
  };
  std::map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);  // those that have a session
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  Budget::Share of_remembered_ ABSL_GUARDED_BY(mutex_);
  std::vector<ReleasedPlace> released_ ABSL_GUARDED_BY(mutex_);  // whose engines were not notified yet
  std::list<SessionKey> ended_ ABSL_GUARDED_BY(mutex_);          // that are remembered, oldest first
  struct Remembered {
    std::list<SessionKey>::iterator place;  // in ended_
    bool moved = false;
  };
  std::map<SessionKey, Remembered> remembered_ ABSL_GUARDED_BY(mutex_);
};

// For an error of SessionStore::Import: whether the existing session has all tokens of the imported one, so that
// nothing is lost.
bool HoldsAllOf(const absl::Status& import_error);

}  // namespace longshort::core
