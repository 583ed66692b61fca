// Conversations that are remembered between calls. A store belongs to the engine of one language model, or to several
// engines of the same weights, one of which takes the place of another.
//
// A session is the tokens of its conversation, and a hint where their cache pages are parked.
// - The hint may turn out void. Then the tokens are read again.
// - It is void for every engine but the one whose pages they are.
// - That engine is told when the pages are not wanted any more (SessionPages).
// A session belongs to a client: another client's session of the same id is another session.
//
//   Open -> Lease -> Commit   the call ended well: the session goes on from its end
//               \--> (drop)   the call failed: the session is as it was before, a new one never was
//
// A session ends when it is closed, or when it was not used for its time to live. A call that failed is a use, too.
// - Once its time is over no call finds it. What it has is given back by whatever call comes next, or by EndExpired.
// - The ids of the sessions that ended so last are remembered. So a client that comes too late is told, and does not
//   begin anew unawares. So are those of sessions that have moved to another server.
// - The id of a session that was closed otherwise may be used again at once.
//
// Anonymous clients are one client here, because nothing tells them apart. The limits per client do not hold for them:
// where nobody says who asks, such a limit would only give room away.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "core/cache/parked_pages.h"
#include "core/session/session.h"

namespace longshort::core {

struct SessionKey {
  std::string client;  // "" for anonymous ones, who share their sessions
  std::string id;

  friend bool operator<(const SessionKey& a, const SessionKey& b) {
    return std::tie(a.client, a.id) < std::tie(b.client, b.id);
  }
};

// What a call makes of a session.
struct SessionState {
  // All that was said so far. What follows the last token has not been asked for.
  std::vector<int32_t> tokens;
  // The parked sequence that has the rows of all but the last one, until its pages are wanted for another.
  std::optional<ParkedPlace> parked;
};

// How a session is closed.
struct SessionClosing {
  // It goes on at another server: its id is remembered.
  bool moved = false;
  // How many tokens it must hold.
  std::optional<int64_t> expected_tokens = std::nullopt;
};

// Thread-safe.
class SessionStore final {
  // Shared with leases: a long conversation is not copied while others wait for the mutex.
  using Tokens = std::shared_ptr<const std::vector<int32_t>>;

 public:
  struct Options {
    absl::Duration time_to_live = absl::Minutes(30);
    // Sessions that may live at once, of all clients and of one. Beyond, a new one is refused.
    int64_t max_sessions = 65536;
    int64_t max_sessions_per_client = 16384;
    // Tokens that the sessions of all clients may hold, and those of one. Once they hold as many, none of them is
    // opened, so that none grows. 2^26 tokens take 256 MiB.
    int64_t max_tokens = int64_t{1} << 26;
    int64_t max_tokens_per_client = int64_t{1} << 24;
    // Ended sessions that are remembered.
    int64_t max_remembered = 65536;
  };

  // The session while one call of one engine has it. Gives it back when destroyed. The store must outlive it.
  class Lease final {
   public:
    Lease(Lease&& other) noexcept
        : store_(std::exchange(other.store_, nullptr)),
          key_(std::move(other.key_)),
          tokens_(std::move(other.tokens_)),
          parked_(other.parked_),
          pages_(std::move(other.pages_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    const SessionKey& key() const { return key_; }
    // As the call before left them; none for a new session.
    const std::vector<int32_t>& tokens() const { return *tokens_; }
    // Where that call parked them; nothing if that is in another engine.
    const std::optional<ParkedPlace>& parked() const { return parked_; }
    // The session goes on from `state`, which is parked in the engine that opened it. Ends the lease.
    // The place that it had before is given up, wherever that is: if it went on from there, nothing is left there.
    void Commit(SessionState state);

   private:
    friend class SessionStore;
    Lease(SessionStore* store, SessionKey key, Tokens tokens, std::optional<ParkedPlace> parked,
          std::weak_ptr<SessionPages> pages)
        : store_(store), key_(std::move(key)), tokens_(std::move(tokens)), parked_(parked), pages_(std::move(pages)) {}

    SessionStore* store_;
    SessionKey key_;
    Tokens tokens_;
    std::optional<ParkedPlace> parked_;
    std::weak_ptr<SessionPages> pages_;
  };

  // `clock` must outlive the store; `observer` may be null.
  SessionStore(const Clock& clock, const Options& options, std::unique_ptr<SessionObserver> observer = nullptr)
      : clock_(clock), options_(options), observer_(std::move(observer)), time_to_live_(options.time_to_live) {}

  // From now on, for the sessions that there are too.
  void SetTimeToLive(absl::Duration time_to_live);

  // In what follows, `pages` are those of the engine that asks; null if it need not hear what is given up.

  // The session, or a new one under this key unless it `must_exist`. Errors:
  // - ABORTED while another call has it;
  // - NOT_FOUND if it has ended, or must exist and does not;
  // - RESOURCE_EXHAUSTED if there are too many sessions, or they hold too many tokens. The Refusal says to come back
  //   when the one that was used longest ago will end, or in a minute, because another may be closed before. No work
  //   waits for that.
  absl::StatusOr<Lease> Open(const SessionKey& key, bool must_exist,
                             const std::shared_ptr<SessionPages>& pages = nullptr);

  // A session that is there, for a call that leaves it as it is. It does not matter how full the store is.
  // Errors: NOT_FOUND, ABORTED as Open.
  absl::StatusOr<Lease> OpenToRead(const SessionKey& key, const std::shared_ptr<SessionPages>& pages = nullptr);

  // Begins a session from `state`. One that is there and began with the same tokens, and has no others, goes on to
  // these. Errors, and then nothing has changed:
  // - ALREADY_EXISTS if another one is there. HoldsAllOf tells whether it has all of these tokens;
  // - ABORTED while another call has one that might go on;
  // - RESOURCE_EXHAUSTED as Open, and if its tokens are more than there is room for.
  absl::Status Import(const SessionKey& key, SessionState state, const std::shared_ptr<SessionPages>& pages = nullptr);
  // What Import would say now to a session of these tokens.
  absl::Status CheckImport(const SessionKey& key, const std::vector<int32_t>& tokens);

  // Tokens that all sessions, and so any of them, may hold.
  int64_t max_tokens() const { return options_.max_tokens; }

  // Ends a session; unless it moved, its id may be used anew at once. Errors: NOT_FOUND, ABORTED; FAILED_PRECONDITION
  // if it holds other than the expected tokens.
  absl::Status Close(const SessionKey& key, const SessionClosing& closing = {});

  // One that lives, as others see it.
  struct Listed {
    SessionKey key;
    int64_t tokens = 0;
    absl::Duration idle = absl::ZeroDuration();  // since a call had it
    bool in_use = false;
  };
  struct Page {
    std::vector<Listed> sessions;    // by key
    std::optional<SessionKey> next;  // behind which the next page begins; none if there is no more
  };
  // Of the sessions of `client`, or of all, those that come behind `after`. Looks at `most` of them.
  Page List(const std::optional<std::string>& client, const std::optional<SessionKey>& after, int most);

  // Gives back what sessions have whose time is over, of a bounded number of sessions. Returns when to call it again,
  // unless something comes before: at once if there are more, in the infinite future if no session is idle.
  absl::Time EndExpired();

  struct Counts {
    int64_t sessions = 0;
    int64_t tokens = 0;
  };
  // Of the sessions that live now, and of those that have ended and were not given back yet.
  Counts counts();

 private:
  struct Session {
    Tokens tokens = std::make_shared<const std::vector<int32_t>>();
    std::optional<ParkedPlace> parked;
    std::weak_ptr<SessionPages> pages;  // that `parked` is a place of
    bool leased = false;
    bool is_new = true;                                          // never committed
    std::multimap<absl::Time, SessionKey>::iterator idle_since;  // of idle_, unless leased
  };
  using Sessions = std::map<SessionKey, Session>;
  struct GivenUp {
    std::weak_ptr<SessionPages> pages;
    ParkedPlace place;
  };
  // Holds the mutex; once it is free, tells engines what was given up meanwhile.
  class Visit final {
   public:
    explicit Visit(SessionStore& store) : store_(store), lock_(store.mutex_) {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit();

   private:
    SessionStore& store_;
    std::unique_lock<std::mutex> lock_;
  };

  // All with the mutex held, by a Visit.
  // At most so many as one call should wait for.
  void EndSomeExpired();
  // The session that lives under this key.
  Sessions::iterator Find(const SessionKey& key);
  // Ends an idle session whose time is over.
  void End(Sessions::iterator session);
  Counts CountsOf(const std::string& client) const;
  absl::Status CheckNew(const SessionKey& key, const std::vector<int32_t>& tokens);
  // Whether a session that is there may go on to these tokens.
  absl::Status CheckGoesOn(const SessionKey& key, const Session& session, const std::vector<int32_t>& tokens) const;
  absl::Status CheckRoom(const std::string& client) const;
  absl::Status CheckTokens(const std::string& client) const;
  // Whether there is room for so many tokens more.
  absl::Status CheckMoreTokens(const std::string& client, int64_t tokens) const;
  absl::Status NotThere(const SessionKey& key) const;
  Lease Lend(Sessions::iterator session, const std::shared_ptr<SessionPages>& pages);
  absl::Status Refuse(const char* what, int64_t value, int64_t limit) const;
  Sessions::iterator Add(const SessionKey& key);
  void SetState(Sessions::iterator session, SessionState state, std::weak_ptr<SessionPages> pages);
  void GiveUpPages(Session& session);
  void MakeIdle(Sessions::iterator session);
  void Remove(Sessions::iterator session);
  bool HasEnded(const Session& session) const;
  void Remember(const SessionKey& key, bool moved);
  void Forget(const SessionKey& key);

  void GiveBack(Lease& lease);

  const Clock& clock_;
  const Options options_;
  const std::unique_ptr<SessionObserver> observer_;
  std::mutex mutex_;  // guards what follows
  absl::Duration time_to_live_;
  Sessions sessions_;
  std::multimap<absl::Time, SessionKey> idle_;      // those not leased, by the end of their last use
  std::map<std::string, Counts> counts_of_client_;  // of those that have a session
  int64_t tokens_ = 0;
  std::vector<GivenUp> given_up_;  // of which their engines have not heard
  std::list<SessionKey> ended_;    // that are remembered, oldest first
  struct Remembered {
    std::list<SessionKey>::iterator place;  // in ended_
    bool moved = false;
  };
  std::map<SessionKey, Remembered> remembered_;
};

// Of an error of SessionStore::Import: whether the session that is there has all tokens of the one that was to come, so
// that nothing is lost without it.
bool HoldsAllOf(const absl::Status& import_error);

}  // namespace longshort::core
