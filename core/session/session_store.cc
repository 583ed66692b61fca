#include "core/session/session_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/schedule/refusal.h"

namespace longshort::core {
namespace {

// Bounds of the retry delay. A session may expire soon, or be closed long before it expires. Calls that use a session
// take seconds.
constexpr absl::Duration kMinRetryAfter = absl::Seconds(1);
constexpr absl::Duration kMaxRetryAfter = absl::Minutes(1);

// All sessions may expire at the same moment. Ending this many takes some tens of microseconds, so the call that does
// it is not delayed noticeably.
constexpr int kMaxEndedAtOnce = 64;

constexpr char kHoldsAllUrl[] = "type.longshort/core.HoldsAllOfTheSession";

int64_t Count(const std::vector<int32_t>& tokens) { return static_cast<int64_t>(tokens.size()); }

absl::Status InUse(const SessionKey& key) {
  return absl::AbortedError(absl::StrCat("session ", key.id, " is in use by another call"));
}

bool BeginsWith(const std::vector<int32_t>& tokens, const std::vector<int32_t>& beginning) {
  return tokens.size() >= beginning.size() && std::equal(beginning.begin(), beginning.end(), tokens.begin());
}

bool IsSame(const std::weak_ptr<SessionPages>& a, const std::weak_ptr<SessionPages>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

bool HoldsAllOf(const absl::Status& import_error) { return import_error.GetPayload(kHoldsAllUrl).has_value(); }

SessionStore::Visit::~Visit() {
  if (store_.observer_ != nullptr) {
    store_.observer_->OnSessions(static_cast<int64_t>(store_.sessions_.size()), store_.tokens_);
  }
  const std::vector<ReleasedPlace> released = std::exchange(store_.released_, {});
  lock_.Unlock();
  for (const auto& [pages, place] : released) {
    if (const std::shared_ptr<SessionPages> engine = pages.lock()) engine->Release(place);
  }
}

SessionStore::Lease::~Lease() {
  if (store_ != nullptr) store_->Release(*this);
}

void SessionStore::Lease::Commit(SessionState state) {
  SessionStore& store = *std::exchange(store_, nullptr);
  const Visit visit(store);
  const auto session = store.sessions_.find(key_);
  store.SetState(session, std::move(state), std::move(pages_));
  store.MakeIdle(session);
}

void SessionStore::Release(Lease& lease) {
  const Visit visit(*this);
  const auto session = sessions_.find(lease.key_);
  if (session->second.is_new) {
    Remove(session);
  } else {
    MakeIdle(session);
  }
}

void SessionStore::SetTimeToLive(absl::Duration time_to_live) {
  const Visit visit(*this);
  time_to_live_ = time_to_live;
}

absl::StatusOr<SessionStore::Lease> SessionStore::Open(const SessionKey& key, bool must_exist,
                                                       const std::shared_ptr<SessionPages>& pages, int64_t more) {
  const Visit visit(*this);
  EndSomeExpired();
  auto session = Find(key);
  if (session == sessions_.end()) {
    if (must_exist || remembered_.count(key) > 0) return NotFound(key);
    LS_RETURN_IF_ERROR(CheckRoom(key.counted(), more));
    session = Add(key);
  } else {
    if (session->second.leased) return InUse(key);
    LS_RETURN_IF_ERROR(CheckTokens(session->first.counted(), more));
    idle_.erase(session->second.idle_since);
  }
  SetCharge(session, session->second.charge + more);
  return MakeLease(session, pages);
}

absl::StatusOr<SessionStore::Lease> SessionStore::OpenToRead(const SessionKey& key,
                                                             const std::shared_ptr<SessionPages>& pages) {
  const Visit visit(*this);
  EndSomeExpired();
  const auto session = Find(key);
  if (session == sessions_.end()) return NotFound(key);
  if (session->second.leased) return InUse(key);
  idle_.erase(session->second.idle_since);
  return MakeLease(session, pages);
}

SessionStore::Lease SessionStore::MakeLease(Sessions::iterator session, const std::shared_ptr<SessionPages>& pages) {
  session->second.leased = true;
  const bool parked_there = IsSame(session->second.pages, pages);
  return Lease(this, session->first, session->second.tokens, parked_there ? session->second.parked : std::nullopt,
               session->second.partial_from, pages);
}

absl::Status SessionStore::NotFound(const SessionKey& key) const {
  const auto remembered = remembered_.find(key);
  if (remembered == remembered_.end()) return absl::NotFoundError(absl::StrCat("there is no session ", key.id));
  if (remembered->second.moved) {
    return absl::NotFoundError(absl::StrCat("session ", key.id, " has moved to another server; send the call there"));
  }
  return absl::NotFoundError(absl::StrCat("session ", key.id, " has expired: it was not used for ",
                                          absl::FormatDuration(time_to_live_),
                                          "; start a new session with another id"));
}

absl::Status SessionStore::Import(const SessionKey& key, SessionState state,
                                  const std::shared_ptr<SessionPages>& pages) {
  const Visit visit(*this);
  LS_RETURN_IF_ERROR(CheckNew(key, state.tokens));
  RemoveEnded(key);
  auto session = sessions_.find(key);
  if (session == sessions_.end()) {
    session = Add(key);
  } else {
    idle_.erase(session->second.idle_since);
  }
  SetState(session, std::move(state), pages);
  MakeIdle(session);
  return absl::OkStatus();
}

absl::Status SessionStore::CheckImport(const SessionKey& key, const std::vector<int32_t>& tokens) {
  const Visit visit(*this);
  return CheckNew(key, tokens);
}

absl::Status SessionStore::CheckNew(const SessionKey& key, const std::vector<int32_t>& tokens) {
  EndSomeExpired();
  const auto session = Find(key);
  if (session != sessions_.end()) return CheckContinues(session->first, session->second, tokens);
  return CheckRoom(key.counted(), Count(tokens));
}

absl::Status SessionStore::CheckContinues(const SessionKey& key, const Session& session,
                                          const std::vector<int32_t>& tokens) const {
  const std::vector<int32_t>& there = *session.tokens;
  if (!session.is_new && BeginsWith(there, tokens)) {
    absl::Status status = absl::AlreadyExistsError(absl::StrCat("session ", key.id, " already exists"));
    status.SetPayload(kHoldsAllUrl, absl::Cord());
    return status;
  }
  if (!BeginsWith(tokens, there)) {
    return absl::AlreadyExistsError(absl::StrCat("another session ", key.id, " already exists"));
  }
  if (session.leased) return InUse(key);
  return CheckTokens(key.counted(), Count(tokens) - Count(there));
}

absl::Status SessionStore::Close(const SessionKey& key, const SessionClosing& closing) {
  const Visit visit(*this);
  EndSomeExpired();
  const auto session = Find(key);
  if (session == sessions_.end()) return absl::NotFoundError(absl::StrCat("there is no session ", key.id));
  if (session->second.leased) return InUse(key);
  const int64_t tokens = Count(*session->second.tokens);
  if (closing.expected_tokens.value_or(tokens) != tokens) {
    return absl::FailedPreconditionError(
        absl::StrCat("session ", key.id, " holds ", tokens, " tokens, not ", *closing.expected_tokens));
  }
  idle_.erase(session->second.idle_since);
  Remove(session);
  if (closing.moved) AddEnded(key, true);
  return absl::OkStatus();
}

SessionStore::Page SessionStore::List(const std::optional<std::string>& client, const std::optional<SessionKey>& after,
                                      int max) {
  const Visit visit(*this);
  EndSomeExpired();
  const absl::Time now = clock_.Now();
  Page page;
  auto session = after.has_value()    ? sessions_.upper_bound(*after)
                 : client.has_value() ? sessions_.lower_bound({.client = *client, .id = ""})
                                      : sessions_.begin();
  const auto there_are_more = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return session != sessions_.end() && (!client.has_value() || session->first.client == *client);
  };
  for (int i = 0; i < max && there_are_more(); ++i, ++session) {
    const auto& [key, state] = *session;
    if (i + 1 == max) page.next = key;
    if (HasEnded(state)) continue;
    page.sessions.push_back({.key = key,
                             .tokens = Count(*state.tokens),
                             .idle = state.leased ? absl::ZeroDuration() : now - state.idle_since->first,
                             .in_use = state.leased});
  }
  if (!there_are_more()) page.next.reset();
  return page;
}

absl::Time SessionStore::EndExpired() {
  const Visit visit(*this);
  EndSomeExpired();
  return idle_.empty() ? absl::InfiniteFuture() : idle_.begin()->first + time_to_live_;
}

SessionStore::Counts SessionStore::counts() {
  const Visit visit(*this);
  EndSomeExpired();
  return {.sessions = static_cast<int64_t>(sessions_.size()), .tokens = tokens_};
}

void SessionStore::EndSomeExpired() {
  const absl::Time newest = clock_.Now() - time_to_live_;
  for (int i = 0; i < kMaxEndedAtOnce && !idle_.empty() && idle_.begin()->first <= newest; ++i) {
    End(sessions_.find(idle_.begin()->second));
  }
}

SessionStore::Sessions::iterator SessionStore::Find(const SessionKey& key) {
  const auto session = sessions_.find(key);
  if (session == sessions_.end() || !HasEnded(session->second)) return session;
  End(session);
  return sessions_.end();
}

bool SessionStore::HasEnded(const Session& session) const {
  return !session.leased && session.idle_since->first <= clock_.Now() - time_to_live_;
}

void SessionStore::End(Sessions::iterator session) {
  AddEnded(session->first, false);
  idle_.erase(session->second.idle_since);
  Remove(session);
}

std::shared_ptr<Budget> SessionStore::BudgetOf(const std::string& client) const {
  return client.empty() ? options_.tokens->all() : options_.tokens->Of(client);
}

absl::Status SessionStore::CheckRoom(const std::string& client, int64_t tokens) const {
  const auto count = static_cast<int64_t>(sessions_.size());
  if (count >= options_.max_sessions) return Refuse("live sessions: ", count, options_.max_sessions);
  const auto known = clients_.find(client);
  const int64_t of_client = known == clients_.end() ? 0 : known->second.sessions;
  if (!client.empty() && of_client >= options_.max_sessions_per_client) {
    return Refuse("live sessions of this client: ", of_client, options_.max_sessions_per_client);
  }
  return CheckTokens(client, tokens);
}

absl::Status SessionStore::CheckTokens(const std::string& client, int64_t tokens) const {
  const auto check = [&](const Budget& budget, const char* sessions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t held = budget.held(), limit = budget.limit();
    if (held >= limit) return Refuse(absl::StrCat(sessions, ": "), held, limit);
    if (held + tokens > limit) return Refuse(absl::StrCat(sessions, " with this one: "), held + tokens, limit);
    return absl::OkStatus();
  };
  LS_RETURN_IF_ERROR(check(*options_.tokens->all(), "tokens in sessions"));
  return client.empty() ? absl::OkStatus() : check(*BudgetOf(client), "tokens in sessions of this client");
}

absl::Status SessionStore::Refuse(const std::string& what, int64_t value, int64_t limit) const {
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(what, value, ", the limit is ", limit, "; close a session, or retry later"));
  const absl::Duration next_end = idle_.empty() ? kMinRetryAfter : idle_.begin()->first + time_to_live_ - clock_.Now();
  SetRefusal(status, {.retry_after = std::clamp(next_end, kMinRetryAfter, kMaxRetryAfter), .queue_depth = 0});
  return status;
}

SessionStore::Sessions::iterator SessionStore::Add(const SessionKey& key) {
  const auto session = sessions_.emplace(key, Session()).first;
  Client& client = clients_[key.counted()];
  if (++client.sessions == 1) client.tokens = Budget::Share(BudgetOf(key.counted()));
  SetCharge(session, options_.session_cost);
  return session;
}

void SessionStore::SetCharge(Sessions::iterator session, int64_t charge) {
  clients_.at(session->first.counted()).tokens.Add(charge - session->second.charge);
  session->second.charge = charge;
}

void SessionStore::SetState(Sessions::iterator session, SessionState state, std::weak_ptr<SessionPages> pages) {
  tokens_ += Count(state.tokens) - Count(*session->second.tokens);
  ReleasePages(session->second);
  session->second.tokens = std::make_shared<const std::vector<int32_t>>(std::move(state.tokens));
  session->second.parked = state.parked;
  session->second.partial_from = state.partial_from;
  session->second.pages = std::move(pages);
  session->second.is_new = false;
}

void SessionStore::ReleasePages(Session& session) {
  if (session.parked.has_value()) released_.push_back({std::move(session.pages), *session.parked});
}

void SessionStore::MakeIdle(Sessions::iterator session) {
  session->second.leased = false;
  SetCharge(session, options_.session_cost + Count(*session->second.tokens));
  session->second.idle_since = idle_.emplace(clock_.Now(), session->first);
}

void SessionStore::Remove(Sessions::iterator session) {
  ReleasePages(session->second);
  tokens_ -= Count(*session->second.tokens);
  SetCharge(session, 0);
  const auto client = clients_.find(session->first.counted());
  if (--client->second.sessions == 0) clients_.erase(client);
  sessions_.erase(session);
}

void SessionStore::AddEnded(const SessionKey& key, bool moved) {
  RemoveEnded(key);
  remembered_[key] = {.place = ended_.insert(ended_.end(), key), .moved = moved};
  constexpr int64_t kPartOfTokens = 8;
  const auto count = static_cast<int64_t>(ended_.size());
  if (count > options_.max_remembered || count * options_.remembered_cost > max_tokens() / kPartOfTokens) {
    RemoveEnded(SessionKey(ended_.front()));
  }
  of_remembered_.SetAmount(static_cast<int64_t>(ended_.size()) * options_.remembered_cost);
}

void SessionStore::RemoveEnded(const SessionKey& key) {
  const auto found = remembered_.find(key);
  if (found == remembered_.end()) return;
  ended_.erase(found->second.place);
  remembered_.erase(found);
  of_remembered_.SetAmount(static_cast<int64_t>(ended_.size()) * options_.remembered_cost);
}

}  // namespace longshort::core
