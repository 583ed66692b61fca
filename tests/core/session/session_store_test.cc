#include "core/session/session_store.h"

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core::session_store_test {

constexpr absl::Duration kTimeToLive = absl::Minutes(10);

class SessionStoreTest : public testing::Test {
 protected:
  SessionStore::Options Options() const {
    SessionStore::Options options;
    options.time_to_live = kTimeToLive;
    options.session_cost = options.remembered_cost = 0;
    return options;
  }

  // Without room that a client leaves.
  static std::shared_ptr<ClientBudgets> Tokens(int64_t all, int64_t of_client = int64_t{1} << 24) {
    return std::make_shared<ClientBudgets>(std::make_shared<Budget>(all, Budget::Names{"the sessions", "tokens"}),
                                           of_client, Budget::Names{"this client's sessions", "tokens"});
  }

  // A call that ends well and leaves the session with these tokens.
  void Call(SessionStore& store, const SessionKey& key, std::vector<int32_t> tokens) {
    absl::StatusOr<SessionStore::Lease> lease = store.Open(key, false);
    ASSERT_TRUE(lease.ok()) << lease.status();
    lease->Commit({.tokens = std::move(tokens), .parked = {}});
  }

  static std::vector<int32_t> TokensOf(SessionStore& store, const SessionKey& key) {
    const absl::StatusOr<SessionStore::Lease> lease = store.Open(key, true);
    if (!lease.ok()) return {};
    return {lease->tokens().begin(), lease->tokens().end()};
  }

  // The message of the refusal for lack of room; empty if the call is not refused.
  static std::string RefusalOf(SessionStore& store, const SessionKey& key) {
    const absl::Status status = store.Open(key, false).status();
    return absl::IsResourceExhausted(status) ? std::string(status.message()) : "";
  }

  FakeClock clock_;
  SessionStore store_{clock_, Options()};
  const SessionKey key_{.client = "alice", .id = "talk"};
};

TEST_F(SessionStoreTest, GoesOnWhereTheLastCallEnded) {
  absl::StatusOr<SessionStore::Lease> first = store_.Open(key_, false);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->tokens().empty());
  first->Commit({.tokens = {1, 2, 3}, .parked = ParkedPlace{.worker = 1, .id = 7}});
  const absl::StatusOr<SessionStore::Lease> second = store_.Open(key_, true);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->tokens().size(), 3U);
  ASSERT_TRUE(second->parked().has_value());
  EXPECT_EQ(second->parked()->worker, 1);
  EXPECT_EQ(second->parked()->id, 7U);
}

TEST_F(SessionStoreTest, ALongConversationIsNotCopiedForEachCall) {
  Call(store_, key_, std::vector<int32_t>(100'000, 7));
  const auto first_token = [this] { return store_.OpenToRead(key_)->tokens().data(); };
  EXPECT_EQ(first_token(), first_token());
}

// Keeps the ids of the parked sequences that the store gives up.
class RecordedPages final : public SessionPages {
 public:
  explicit RecordedPages(SessionStore& store) : store_(store) {}
  void Release(const ParkedPlace& place) override {
    store_.SetTimeToLive(kTimeToLive);  // would wait for itself if the store were locked
    ids.push_back(place.id);
  }

  std::vector<ParkedId> ids;

 private:
  SessionStore& store_;
};

TEST_F(SessionStoreTest, AnEngineIsNotifiedOfClosedExpiredAndContinuedSessions) {
  const auto here = std::make_shared<RecordedPages>(store_), there = std::make_shared<RecordedPages>(store_);
  const auto call = [&](const std::string& id, const std::shared_ptr<SessionPages>& pages,
                        std::optional<ParkedPlace> parked) {
    store_.Open({.client = "", .id = id}, false, pages)->Commit({.tokens = {1}, .parked = parked});
  };
  call("closed", here, ParkedPlace{.worker = 0, .id = 1});
  ASSERT_TRUE(store_.Close({.client = "", .id = "closed"}).ok());
  EXPECT_THAT(here->ids, testing::ElementsAre(1));
  call("elsewhere", here, ParkedPlace{.worker = 0, .id = 2});
  call("elsewhere", here, ParkedPlace{.worker = 0, .id = 3});
  EXPECT_THAT(here->ids, testing::ElementsAre(1, 2)) << "it may have gone on from its tokens";
  call("elsewhere", here, ParkedPlace{.worker = 1, .id = 4});
  EXPECT_THAT(here->ids, testing::ElementsAre(1, 2, 3));
  call("elsewhere", there, ParkedPlace{.worker = 1, .id = 5});
  EXPECT_THAT(here->ids, testing::ElementsAre(1, 2, 3, 4));
  call("elsewhere", there, std::nullopt);
  EXPECT_THAT(there->ids, testing::ElementsAre(5));
  ASSERT_TRUE(
      store_.Import({.client = "", .id = "old"}, {.tokens = {1}, .parked = {{.worker = 0, .id = 6}}}, here).ok());
  clock_.Advance(kTimeToLive);
  EXPECT_EQ(store_.counts().sessions, 0);
  EXPECT_THAT(here->ids, testing::ElementsAre(1, 2, 3, 4, 6));
  EXPECT_THAT(there->ids, testing::ElementsAre(5));
}

TEST_F(SessionStoreTest, WhatIsParkedIsForTheOneEngineWhoseItIs) {
  const auto here = std::make_shared<RecordedPages>(store_);
  auto there = std::make_shared<RecordedPages>(store_);
  store_.Open(key_, false, here)->Commit({.tokens = {1}, .parked = ParkedPlace{.worker = 1, .id = 7}});
  EXPECT_FALSE(store_.Open(key_, true, there)->parked().has_value());
  EXPECT_FALSE(store_.OpenToRead(key_, there)->parked().has_value());
  EXPECT_TRUE(store_.Open(key_, true, here)->parked().has_value()) << "who only looked has changed nothing";
  store_.Open(key_, true, there)->Commit({.tokens = {1, 2}, .parked = ParkedPlace{.worker = 0, .id = 8}});
  there.reset();
  EXPECT_FALSE(store_.Open(key_, true, here)->parked().has_value());
  EXPECT_EQ(TokensOf(store_, key_).size(), 2U);
  EXPECT_TRUE(store_.Close(key_).ok());
}

TEST_F(SessionStoreTest, AnotherTimeToLiveCountsForThoseThatThereAre) {
  Call(store_, key_, {1});
  clock_.Advance(absl::Seconds(2));
  store_.SetTimeToLive(absl::Seconds(3));
  EXPECT_EQ(store_.counts().sessions, 1);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(std::string(store_.Open(key_, false).status().message()), testing::HasSubstr("not used for 3s"));
}

TEST_F(SessionStoreTest, OneCallAtATime) {
  const absl::StatusOr<SessionStore::Lease> first = store_.Open(key_, false);
  EXPECT_EQ(store_.Open(key_, false).status(), absl::AbortedError("session talk is in use by another call"));
  EXPECT_TRUE(absl::IsAborted(store_.Close(key_)));
}

TEST_F(SessionStoreTest, AFailedCallChangesNothing) {
  { ASSERT_TRUE(store_.Open(key_, false).ok()); }
  EXPECT_EQ(store_.Open(key_, true).status(), absl::NotFoundError("there is no session talk"));
  Call(store_, key_, {1, 2});
  { ASSERT_TRUE(store_.Open(key_, true).ok()); }
  EXPECT_EQ(TokensOf(store_, key_), (std::vector<int32_t>{1, 2}));
}

TEST_F(SessionStoreTest, BelongsToItsClient) {
  Call(store_, key_, {1});
  EXPECT_TRUE(absl::IsNotFound(store_.Open({.client = "bob", .id = "talk"}, true).status()));
  Call(store_, {.client = "bob", .id = "talk"}, {2});
  EXPECT_EQ(TokensOf(store_, key_), std::vector<int32_t>{1});
}

TEST_F(SessionStoreTest, EndsWhenItWasNotUsedForItsTimeAndSaysSo) {
  Call(store_, key_, {1});
  clock_.Advance(kTimeToLive - absl::Seconds(1));
  EXPECT_EQ(TokensOf(store_, key_), std::vector<int32_t>{1});  // and was used by this
  clock_.Advance(kTimeToLive - absl::Seconds(1));
  EXPECT_EQ(TokensOf(store_, key_), std::vector<int32_t>{1});
  clock_.Advance(kTimeToLive);
  EXPECT_EQ(
      store_.Open(key_, false).status(),
      absl::NotFoundError("session talk has expired: it was not used for 10m; start a new session with another id"));
  EXPECT_EQ(store_.counts().sessions, 0);
  EXPECT_EQ(store_.counts().tokens, 0);
}

using Latest = std::pair<int64_t, int64_t>;  // sessions, and their tokens

class RecordingSessionObserver final : public SessionObserver {
 public:
  explicit RecordingSessionObserver(Latest& latest) : latest_(latest) {}
  void OnSessions(int64_t sessions, int64_t tokens) override { latest_ = {sessions, tokens}; }

 private:
  Latest& latest_;
};

TEST_F(SessionStoreTest, ReportsTheNumberOfSessionsAndTheirTokens) {
  Latest latest;
  SessionStore store(clock_, Options(), std::make_unique<RecordingSessionObserver>(latest));
  Call(store, key_, {1, 2});
  EXPECT_EQ(latest, Latest(1, 2));
  ASSERT_TRUE(store.Import({.client = "bob", .id = "talk"}, {.tokens = {1, 2, 3}, .parked = {}}).ok());
  EXPECT_EQ(latest, Latest(2, 5));
  ASSERT_TRUE(store.Close(key_).ok());
  EXPECT_EQ(latest, Latest(1, 3));
  clock_.Advance(kTimeToLive);
  store.EndExpired();
  EXPECT_EQ(latest, Latest(0, 0));
}

TEST_F(SessionStoreTest, SaysWhenTheNextOneEnds) {
  EXPECT_EQ(store_.EndExpired(), absl::InfiniteFuture());
  Call(store_, key_, {1});
  const absl::Time ends = clock_.Now() + kTimeToLive;
  clock_.Advance(absl::Minutes(1));
  Call(store_, {.client = "bob", .id = "talk"}, {2});
  EXPECT_EQ(store_.EndExpired(), ends);
  clock_.Advance(kTimeToLive - absl::Minutes(1));
  EXPECT_EQ(store_.EndExpired(), ends + absl::Minutes(1));
  EXPECT_EQ(store_.counts().sessions, 1);
}

TEST_F(SessionStoreTest, MayEndWithManyOthersWithoutBlockingCalls) {
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) Call(store_, {.client = "alice", .id = absl::StrCat(i)}, {1});
  clock_.Advance(kTimeToLive);
  int calls = 1;
  for (; store_.EndExpired() <= clock_.Now(); ++calls) {
    // Its tokens may still be there, but it has ended.
    EXPECT_TRUE(absl::IsNotFound(store_.Open({.client = "alice", .id = absl::StrCat(kMany - calls)}, true).status()));
    ASSERT_LT(calls, kMany);
  }
  EXPECT_GT(calls, 5);
  EXPECT_EQ(store_.counts().sessions, 0);
  EXPECT_EQ(store_.counts().tokens, 0);
}

TEST_F(SessionStoreTest, DoesNotEndInTheMiddleOfACall) {
  absl::StatusOr<SessionStore::Lease> lease = store_.Open(key_, false);
  clock_.Advance(2 * kTimeToLive);
  EXPECT_EQ(store_.counts().sessions, 1);
  lease->Commit({.tokens = {1}, .parked = {}});
  EXPECT_EQ(TokensOf(store_, key_), std::vector<int32_t>{1});
}

TEST_F(SessionStoreTest, AClosedSessionMayBeginAgain) {
  Call(store_, key_, {1});
  EXPECT_TRUE(store_.Close(key_).ok());
  EXPECT_TRUE(absl::IsNotFound(store_.Close(key_)));
  const absl::StatusOr<SessionStore::Lease> reopened = store_.Open(key_, false);
  ASSERT_TRUE(reopened.ok());
  EXPECT_TRUE(reopened->tokens().empty());
}

TEST_F(SessionStoreTest, AMovedSessionDoesNotBeginAgainUnlessItIsImported) {
  Call(store_, key_, {1});
  ASSERT_TRUE(store_.Close(key_, {.moved = true}).ok());
  for (const bool must_exist : {false, true}) {
    const absl::Status moved = store_.Open(key_, must_exist).status();
    EXPECT_TRUE(absl::IsNotFound(moved));
    EXPECT_EQ(moved.message(), "session talk has moved to another server; send the call there");
  }
  EXPECT_TRUE(absl::IsNotFound(store_.OpenToRead(key_).status()));
  ASSERT_TRUE(store_.Import(key_, {.tokens = {1, 2}, .parked = {}}).ok());
  EXPECT_EQ(TokensOf(store_, key_), (std::vector<int32_t>{1, 2}));
  clock_.Advance(kTimeToLive);
  EXPECT_THAT(store_.Open(key_, false).status().message(), testing::HasSubstr("has expired"))
      << "it did not move again";
}

TEST_F(SessionStoreTest, OneThatWentOnIsNotClosedByWhoExpectsIts) {
  Call(store_, key_, {1, 2});
  const absl::Status refused = store_.Close(key_, {.expected_tokens = 1});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(), "session talk holds 2 tokens, not 1");
  EXPECT_EQ(TokensOf(store_, key_), (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(store_.Close(key_, {.expected_tokens = 2}).ok());
  EXPECT_TRUE(store_.Open(key_, false).ok()) << "it did not move";
}

// So that a full server can be relieved.
TEST_F(SessionStoreTest, OneThatMustNotGrowCanBeRead) {
  SessionStore::Options options = Options();
  options.tokens = Tokens(2);
  SessionStore store(clock_, options);
  Call(store, key_, {1, 2});
  ASSERT_TRUE(absl::IsResourceExhausted(store.Open(key_, true).status()));
  {
    const absl::StatusOr<SessionStore::Lease> lease = store.OpenToRead(key_);
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(lease->tokens(), (std::vector<int32_t>{1, 2}));
    EXPECT_TRUE(absl::IsAborted(store.OpenToRead(key_).status()));
  }
  clock_.Advance(kTimeToLive - absl::Seconds(1));
  { ASSERT_TRUE(store.OpenToRead(key_).ok()); }
  clock_.Advance(kTimeToLive - absl::Seconds(1));
  { ASSERT_TRUE(store.OpenToRead(key_).ok()) << "that was a use of it"; }
  clock_.Advance(kTimeToLive);
  EXPECT_THAT(std::string(store.OpenToRead(key_).status().message()), testing::HasSubstr("has expired"));
  EXPECT_EQ(store.OpenToRead({.client = "bob", .id = "talk"}).status(),
            absl::NotFoundError("there is no session talk"));
}

TEST_F(SessionStoreTest, RefusesTooManyNewOnesAndServesThoseThereAre) {
  SessionStore::Options options = Options();
  options.max_sessions = 3;
  options.max_sessions_per_client = 2;
  options.tokens = Tokens(4);
  SessionStore store(clock_, options);
  Call(store, {.client = "a", .id = "1"}, {1});
  Call(store, {.client = "a", .id = "2"}, {1});
  EXPECT_EQ(RefusalOf(store, {.client = "a", .id = "3"}),
            "live sessions of this client: 2, the limit is 2; close a session, or retry later");
  Call(store, {.client = "b", .id = "1"}, {1});
  EXPECT_EQ(RefusalOf(store, {.client = "b", .id = "2"}),
            "live sessions: 3, the limit is 3; close a session, or retry later");
  Call(store, {.client = "b", .id = "1"}, {1, 2, 3});
  EXPECT_TRUE(store.Close({.client = "a", .id = "1"}).ok());
  EXPECT_EQ(RefusalOf(store, {.client = "b", .id = "2"}),
            "tokens in sessions: 4, the limit is 4; close a session, or retry later");
  EXPECT_TRUE(absl::IsResourceExhausted(store.Open({.client = "b", .id = "1"}, true).status())) << "it would grow";
  EXPECT_TRUE(store.Close({.client = "b", .id = "1"}).ok());
  EXPECT_TRUE(store.Open({.client = "a", .id = "2"}, true).ok());
}

TEST_F(SessionStoreTest, OneClientDoesNotTakeAllTheTokens) {
  SessionStore::Options options = Options();
  options.tokens = Tokens(100, 4);
  SessionStore store(clock_, options);
  Call(store, {.client = "a", .id = "1"}, {1});
  Call(store, {.client = "a", .id = "2"}, {1, 2, 3});
  for (const char* id : {"1", "2", "3"}) {
    EXPECT_EQ(RefusalOf(store, {.client = "a", .id = id}),
              "tokens in sessions of this client: 4, the limit is 4; close a session, or retry later");
  }
  EXPECT_TRUE(absl::IsResourceExhausted(store.Import({.client = "a", .id = "3"}, {.tokens = {1}, .parked = {}})));
  Call(store, {.client = "b", .id = "1"}, {1, 2, 3});
  EXPECT_TRUE(store.Close({.client = "a", .id = "1"}).ok());
  EXPECT_EQ(TokensOf(store, {.client = "a", .id = "2"}).size(), 3U) << "what it gave back it may use";
  ASSERT_TRUE(store.Import({.client = "a", .id = "3"}, {.tokens = {1}, .parked = {}}).ok());
  EXPECT_FALSE(RefusalOf(store, {.client = "a", .id = "2"}).empty()) << "imported ones count";
}

TEST_F(SessionStoreTest, AClientThatTakesAllItCanLeavesRoomForOthers) {
  SessionStore::Options options = Options();
  options.tokens = SessionTokenBudgets(1000);
  options.session_cost = 10;
  SessionStore store(clock_, options);
  const auto call = [&](const char* client, int id, int64_t tokens) {
    absl::StatusOr<SessionStore::Lease> lease =
        store.Open({.client = client, .id = absl::StrCat(id)}, false, nullptr, tokens);
    if (lease.ok()) lease->Commit({.tokens = std::vector<int32_t>(tokens), .parked = {}});
    return lease.ok();
  };
  ASSERT_TRUE(call("other", 0, 3));
  int sessions = 0;
  while (call("greedy", sessions, 20)) ++sessions;
  EXPECT_EQ(sessions, 16) << "of 30 each";
  EXPECT_TRUE(call("other", 0, 100));
  EXPECT_TRUE(call("third", 0, 100));
  EXPECT_FALSE(call("greedy", 0, 20)) << "it would grow";
}

TEST_F(SessionStoreTest, TheTokensOfACallCountBeforeItEnds) {
  SessionStore::Options options = Options();
  options.tokens = SessionTokenBudgets(100);
  SessionStore store(clock_, options);
  const SessionKey another{.client = "alice", .id = "another"};
  {
    const auto first = store.Open(key_, false, nullptr, 30);
    EXPECT_EQ(store.Open(another, false, nullptr, 30).status().message(),
              "tokens in sessions of this client with this one: 60, the limit is 50; close a session, or retry later");
  }
  EXPECT_EQ(options.tokens->all()->held(), 0) << "the call failed";
  store.Open(another, false, nullptr, 30)->Commit({.tokens = {1, 2}, .parked = {}});
  EXPECT_EQ(options.tokens->all()->held(), 2);
  { ASSERT_TRUE(store.Open(another, true, nullptr, 30).ok()); }
  EXPECT_EQ(options.tokens->all()->held(), 2);
}

TEST_F(SessionStoreTest, ManyNamesOfOneAccountHaveItsLimits) {
  SessionStore::Options options = Options();
  options.max_sessions_per_client = 3;
  options.tokens = Tokens(100, 10);
  SessionStore store(clock_, options);
  const auto named = [](int i) {
    return SessionKey{.client = absl::StrCat("name-", i), .id = "talk", .account = "ipv4:10.0.0.1"};
  };
  for (int i = 0; i < 3; ++i) Call(store, named(i), std::vector<int32_t>(2));
  EXPECT_EQ(RefusalOf(store, named(3)),
            "live sessions of this client: 3, the limit is 3; close a session, or retry later");
  Call(store, {.client = "name-0", .id = "talk", .account = "ipv4:10.0.0.2"}, std::vector<int32_t>(6));
  EXPECT_EQ(RefusalOf(store, named(1)),
            "tokens in sessions of this client: 10, the limit is 10; close a session, or retry later")
      << "a session counts for who made it";
  Call(store, {.client = "name-9", .id = "talk", .account = "ipv4:10.0.0.2"}, std::vector<int32_t>(9));
  ASSERT_TRUE(store.Close({.client = "name-0", .id = "talk"}).ok());
  Call(store, named(3), std::vector<int32_t>(2));
}

TEST_F(SessionStoreTest, ThoseWhoSayNotWhoTheyAreMayTakeAll) {
  SessionStore::Options options = Options();
  options.max_sessions_per_client = 1;
  options.tokens = Tokens(100, 4);
  SessionStore store(clock_, options);
  for (int i = 0; i < 10; ++i) Call(store, {.client = "", .id = absl::StrCat(i)}, std::vector<int32_t>(10));
  EXPECT_EQ(RefusalOf(store, {.client = "", .id = "0"}),
            "tokens in sessions: 100, the limit is 100; close a session, or retry later");
}

// Sessions live ten minutes.
TEST_F(SessionStoreTest, ARefusalSaysToComeBackWhenOneEndsOrInAMinute) {
  SessionStore::Options options = Options();
  options.max_sessions = 2;
  SessionStore store(clock_, options);
  const SessionKey another{.client = "alice", .id = "another"};
  const auto retry_after = [&] {
    const auto refusal = GetRefusal(store.Open(another, false).status());
    return refusal.has_value() ? refusal->retry_after : absl::InfiniteDuration();
  };
  {
    const auto first = store.Open({.client = "alice", .id = "1"}, false);
    const auto second = store.Open({.client = "alice", .id = "2"}, false);
    EXPECT_EQ(retry_after(), absl::Seconds(1)) << "both are in use";
  }
  Call(store, {.client = "alice", .id = "1"}, {1});
  Call(store, {.client = "alice", .id = "2"}, {1});
  EXPECT_EQ(retry_after(), absl::Minutes(1)) << "one may be closed";
  clock_.Advance(kTimeToLive - absl::Seconds(20));
  EXPECT_EQ(retry_after(), absl::Seconds(20));
  clock_.Advance(absl::Seconds(20));
  EXPECT_TRUE(store.Open(another, false).ok());
}

TEST_F(SessionStoreTest, RemembersOnlySoManyThatEnded) {
  SessionStore::Options options = Options();
  options.max_remembered = 2;
  SessionStore store(clock_, options);
  for (const char* id : {"1", "2", "3"}) {
    Call(store, {.client = "", .id = id}, {1});
    clock_.Advance(absl::Seconds(1));
  }
  clock_.Advance(kTimeToLive);
  EXPECT_TRUE(store.Open({.client = "", .id = "1"}, false).ok());  // forgotten
  EXPECT_TRUE(absl::IsNotFound(store.Open({.client = "", .id = "2"}, false).status()));
  EXPECT_TRUE(absl::IsNotFound(store.Open({.client = "", .id = "3"}, false).status()));
}

TEST_F(SessionStoreTest, SessionsAndRememberedIdsAreCharged) {
  SessionStore::Options options = Options();
  options.tokens = Tokens(64);
  options.session_cost = 10;
  options.remembered_cost = 3;
  {
    SessionStore store(clock_, options);
    for (int i = 0; i < 6; ++i) Call(store, {.client = "", .id = absl::StrCat(i)}, {1});
    EXPECT_EQ(options.tokens->all()->held(), 6 * 11);
    EXPECT_EQ(RefusalOf(store, {.client = "", .id = "6"}),
              "tokens in sessions: 66, the limit is 64; close a session, or retry later");
    EXPECT_EQ(store.counts().tokens, 6);
    EXPECT_TRUE(store.Close({.client = "", .id = "0"}).ok());
    EXPECT_EQ(options.tokens->all()->held(), 5 * 11);
    clock_.Advance(kTimeToLive);
    EXPECT_EQ(store.counts().sessions, 0);
    EXPECT_EQ(options.tokens->all()->held(), 2 * 3) << "ids have an eighth of the tokens";
    EXPECT_TRUE(store.Import({.client = "", .id = "5"}, {.tokens = {1, 2}, .parked = {}}).ok());
    EXPECT_EQ(options.tokens->all()->held(), 3 + 12);
  }
  EXPECT_EQ(options.tokens->all()->held(), 0);
}

// Random calls, beside a plain account of what must be there.
TEST_F(SessionStoreTest, RandomCallsAgreeWithAPlainAccount) {
  struct Entry {
    std::vector<int32_t> tokens;
    absl::Time last_use;
  };
  std::map<std::string, Entry> account;
  std::map<std::string, SessionStore::Lease> open;
  std::mt19937 random(1);
  for (int event = 0; event < 100000; ++event) {
    const std::string id = absl::StrCat(random() % 20);
    const SessionKey key{.client = "c", .id = id};
    clock_.Advance(absl::Seconds(random() % 100));
    const auto entry = account.find(id);
    if (entry != account.end() && open.count(id) == 0 && clock_.Now() - entry->second.last_use >= kTimeToLive) {
      account.erase(entry);
    }
    const auto lease = open.find(id);
    if (lease != open.end()) {
      EXPECT_TRUE(absl::IsAborted(store_.Open(key, false).status()));
      if (random() % 3 > 0) {
        std::vector<int32_t> tokens(random() % 50, static_cast<int32_t>(event));
        account[id] = {.tokens = tokens, .last_use = clock_.Now()};
        lease->second.Commit({.tokens = std::move(tokens), .parked = {}});
      } else if (account.count(id) > 0) {
        account[id].last_use = clock_.Now();
      }
      open.erase(lease);
    } else if (random() % 10 == 0) {
      EXPECT_EQ(store_.Close(key).ok(), account.erase(id) == 1);
    } else {
      absl::StatusOr<SessionStore::Lease> opened = store_.Open(key, account.count(id) > 0);
      if (!opened.ok()) {  // ended, and remembered
        EXPECT_TRUE(absl::IsNotFound(opened.status()));
        EXPECT_EQ(account.count(id), 0U);
        ASSERT_TRUE(store_.Import(key, {}).ok());
        account[id] = {.tokens = {}, .last_use = clock_.Now()};
        continue;
      }
      EXPECT_EQ(opened->tokens(), account[id].tokens);
      if (account[id].tokens.empty() && account[id].last_use == absl::Time()) account.erase(id);
      open.emplace(id, *std::move(opened));
    }
  }
  open.clear();
  clock_.Advance(kTimeToLive);
  EXPECT_EQ(store_.counts().sessions, 0);
  EXPECT_EQ(store_.counts().tokens, 0);
}

}  // namespace longshort::core::session_store_test
