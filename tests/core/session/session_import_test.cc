// SessionStore::Import.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/session/session_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core::session_import_test {

constexpr absl::Duration kTimeToLive = absl::Minutes(10);

// Keeps the ids of the parked sequences that the store gives up.
class RecordedPages final : public SessionPages {
 public:
  void Release(const ParkedPlace& place) override { ids.push_back(place.id); }

  std::vector<ParkedId> ids;
};

class SessionImportTest : public testing::Test {
 protected:
  static SessionStore::Options Options() {
    return {.time_to_live = kTimeToLive, .session_cost = 0, .remembered_cost = 0};
  }

  // Without room that a client leaves.
  static std::shared_ptr<ClientBudgets> Tokens(int64_t all, int64_t of_client = int64_t{1} << 24) {
    return std::make_shared<ClientBudgets>(std::make_shared<Budget>(all, Budget::Names{"the sessions", "tokens"}),
                                           of_client, Budget::Names{"this client's sessions", "tokens"});
  }

  static std::vector<int32_t> TokensOf(SessionStore& store, const SessionKey& key) {
    const absl::StatusOr<SessionStore::Lease> lease = store.Open(key, true);
    if (!lease.ok()) return {};
    return {lease->tokens().begin(), lease->tokens().end()};
  }

  FakeClock clock_;
  SessionStore store_{clock_, Options()};
  const SessionKey key_{.client = "alice", .id = "talk"};
};

TEST_F(SessionImportTest, AnImportedOneIsThereAndNeverReplacesAnother) {
  ASSERT_TRUE(store_.Import(key_, {.tokens = {1}, .parked = {}}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_.Import(key_, {})));
  EXPECT_EQ(TokensOf(store_, key_), std::vector<int32_t>{1});
  clock_.Advance(kTimeToLive);
  EXPECT_TRUE(store_.Import(key_, {}).ok()) << "an ended session may be brought back";
  EXPECT_TRUE(store_.Close(key_).ok());
  EXPECT_TRUE(store_.Open(key_, false).ok());
}

// There           imported
//   1 2 3         1 2          all of it is there
//   1 2 3         1 2 3 4      it goes on
//   1 2 3         1 7          another conversation
TEST_F(SessionImportTest, AnImportedOneGoesOnFromItsBeginningAndFromNothingElse) {
  const auto pages = std::make_shared<RecordedPages>();
  const auto import = [&](std::vector<int32_t> tokens, ParkedId id) {
    return store_.Import(key_, {.tokens = std::move(tokens), .parked = ParkedPlace{.worker = 0, .id = id}}, pages);
  };
  ASSERT_TRUE(import({1, 2, 3}, 1).ok());
  clock_.Advance(kTimeToLive / 2);
  for (const std::vector<int32_t>& beginning : {std::vector<int32_t>{1, 2}, {1, 2, 3}}) {
    const absl::Status status = import(beginning, 2);
    EXPECT_TRUE(absl::IsAlreadyExists(status));
    EXPECT_TRUE(HoldsAllOf(status));
    EXPECT_TRUE(HoldsAllOf(store_.CheckImport(key_, beginning)));
  }
  const absl::Status other = import({1, 7}, 3);
  EXPECT_TRUE(absl::IsAlreadyExists(other));
  EXPECT_FALSE(HoldsAllOf(other));
  EXPECT_TRUE(pages->ids.empty());
  ASSERT_TRUE(import({1, 2, 3, 4}, 4).ok());
  EXPECT_EQ(TokensOf(store_, key_), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(store_.counts().tokens, 4);
  EXPECT_THAT(pages->ids, testing::ElementsAre(1));
  clock_.Advance(kTimeToLive / 2);
  EXPECT_EQ(store_.counts().sessions, 1) << "to go on is a use";
}

TEST_F(SessionImportTest, AnImportedOneDoesNotGoOnWhileACallHasIt) {
  {
    const absl::StatusOr<SessionStore::Lease> begins = store_.Open(key_, false);
    EXPECT_TRUE(absl::IsAborted(store_.Import(key_, {.tokens = {1}, .parked = {}})))
        << "its beginning is not known yet";
  }
  ASSERT_TRUE(store_.Import(key_, {.tokens = {1}, .parked = {}}).ok());
  const absl::StatusOr<SessionStore::Lease> lease = store_.Open(key_, true);
  EXPECT_TRUE(absl::IsAborted(store_.Import(key_, {.tokens = {1, 2}, .parked = {}})));
  EXPECT_TRUE(HoldsAllOf(store_.Import(key_, {.tokens = {1}, .parked = {}})));
}

TEST_F(SessionImportTest, AnImportedOneMustFit) {
  SessionStore::Options options = Options();
  options.tokens = Tokens(10, 6);
  SessionStore store(clock_, options);
  const auto import = [&](const char* client, int64_t tokens) {
    const SessionKey key{.client = client, .id = absl::StrCat(tokens)};
    return store.Import(key, {.tokens = std::vector<int32_t>(tokens), .parked = {}});
  };
  ASSERT_TRUE(import("a", 2).ok());
  EXPECT_EQ(import("a", 5).message(),
            "tokens in sessions of this client with this one: 7, the limit is 6; close a session, or retry later");
  EXPECT_EQ(import("", 9).message(),
            "tokens in sessions with this one: 11, the limit is 10; close a session, or retry later");
  ASSERT_TRUE(import("a", 4).ok());
  ASSERT_TRUE(import("", 3).ok());
  EXPECT_EQ(store.counts().tokens, 9);
}

TEST_F(SessionImportTest, OneThatGoesOnByAnImportMustFit) {
  SessionStore::Options options = Options();
  options.tokens = Tokens(4);
  SessionStore store(clock_, options);
  ASSERT_TRUE(store.Import(key_, {.tokens = {1, 2, 3}, .parked = {}}).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store.Import(key_, {.tokens = {1, 2, 3, 4, 5}, .parked = {}})));
  EXPECT_TRUE(store.Import(key_, {.tokens = {1, 2, 3, 4}, .parked = {}}).ok());
}

}  // namespace longshort::core::session_import_test
