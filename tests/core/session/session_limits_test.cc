// What sessions may take: their number, their tokens, and those of one client.
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/schedule/refusal.h"
#include "core/session/session_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/session/session_store_fixture.h"

namespace longshort::core::session_limits_test {

class SessionLimitsTest : public SessionStoreTest {};

TEST_F(SessionLimitsTest, RefusesTooManyNewOnesAndServesThoseThereAre) {
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

TEST_F(SessionLimitsTest, OneClientDoesNotTakeAllTheTokens) {
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

TEST_F(SessionLimitsTest, AClientThatTakesAllItCanLeavesRoomForOthers) {
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

TEST_F(SessionLimitsTest, TheTokensOfACallCountBeforeItEnds) {
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

TEST_F(SessionLimitsTest, ManyNamesOfOneAccountHaveItsLimits) {
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

TEST_F(SessionLimitsTest, ThoseWhoSayNotWhoTheyAreMayTakeAll) {
  SessionStore::Options options = Options();
  options.max_sessions_per_client = 1;
  options.tokens = Tokens(100, 4);
  SessionStore store(clock_, options);
  for (int i = 0; i < 10; ++i) Call(store, {.client = "", .id = absl::StrCat(i)}, std::vector<int32_t>(10));
  EXPECT_EQ(RefusalOf(store, {.client = "", .id = "0"}),
            "tokens in sessions: 100, the limit is 100; close a session, or retry later");
}

// Sessions live ten minutes.
TEST_F(SessionLimitsTest, ARefusalSaysToComeBackWhenOneEndsOrInAMinute) {
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

TEST_F(SessionLimitsTest, RemembersOnlySoManyThatEnded) {
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

TEST_F(SessionLimitsTest, SessionsAndRememberedIdsAreCharged) {
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

}  // namespace longshort::core::session_limits_test
