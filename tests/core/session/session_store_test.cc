#include "core/session/session_store.h"

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/session/session_store_fixture.h"

namespace longshort::core::session_store_test {

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
