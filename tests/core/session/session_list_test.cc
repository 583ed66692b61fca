// SessionStore::List.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/session/session_store.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_clock.h"

namespace longshort::core::session_list_test {

class SessionListTest : public testing::Test {
 protected:
  void Import(const std::string& client, const std::string& id, int64_t tokens = 1) {
    ASSERT_TRUE(
        store_.Import({.client = client, .id = id}, {.tokens = std::vector<int32_t>(tokens), .parked = {}}).ok());
  }

  // All pages of so many, as "client/id"; | stands between two.
  std::string Pages(const std::optional<std::string>& client, int max) {
    std::string all;
    std::optional<SessionKey> after;
    do {
      SessionStore::Page page = store_.List(client, after, max);
      for (const SessionStore::Listed& listed : page.sessions) {
        absl::StrAppend(&all, listed.key.client, "/", listed.key.id, " ");
      }
      after = std::move(page.next);
      if (after.has_value()) all += "| ";
    } while (after.has_value());
    return all;
  }

  FakeClock clock_;
  SessionStore store_{clock_, {.time_to_live = absl::Minutes(10)}};
};

TEST_F(SessionListTest, EachSessionComesOnceInPages) {
  EXPECT_EQ(Pages(std::nullopt, 2), "");
  Import("", "a");
  Import("bob", "a");
  Import("alice", "b");
  Import("alice", "a");
  Import("", "b");
  EXPECT_EQ(Pages(std::nullopt, 2), "/a /b | alice/a alice/b | bob/a ");
  EXPECT_EQ(Pages(std::nullopt, 5), "/a /b alice/a alice/b bob/a ") << "no page without any at the end";
  EXPECT_EQ(Pages("alice", 1), "alice/a | alice/b ");
  EXPECT_EQ(Pages("", 10), "/a /b ");
  EXPECT_EQ(Pages("al", 10), "");
}

TEST_F(SessionListTest, APageGoesOnWhereOneWasClosedMeanwhile) {
  for (const char* id : {"a", "b", "c"}) Import("alice", id);
  const SessionStore::Page page = store_.List("alice", std::nullopt, 2);
  ASSERT_TRUE(page.next.has_value());
  ASSERT_TRUE(store_.Close(*page.next).ok());
  const SessionStore::Page rest = store_.List("alice", page.next, 2);
  ASSERT_EQ(rest.sessions.size(), 1U);
  EXPECT_EQ(rest.sessions[0].key.id, "c");
}

TEST_F(SessionListTest, DescribesEachSession) {
  Import("alice", "idle", 7);
  Import("alice", "used", 5);
  clock_.Advance(absl::Seconds(90));
  absl::StatusOr<SessionStore::Lease> begins = store_.Open({.client = "alice", .id = "begins"}, false);
  const absl::StatusOr<SessionStore::Lease> used = store_.Open({.client = "alice", .id = "used"}, true);
  ASSERT_TRUE(begins.ok() && used.ok());
  const SessionStore::Page page = store_.List(std::nullopt, std::nullopt, 10);
  ASSERT_EQ(page.sessions.size(), 3U);
  const auto is = [](const SessionStore::Listed& listed, const std::string& id, int64_t tokens, absl::Duration idle,
                     bool in_use) {
    return listed.key.id == id && listed.tokens == tokens && listed.idle == idle && listed.in_use == in_use;
  };
  EXPECT_TRUE(is(page.sessions[0], "begins", 0, absl::ZeroDuration(), true));
  EXPECT_TRUE(is(page.sessions[1], "idle", 7, absl::Seconds(90), false));
  EXPECT_TRUE(is(page.sessions[2], "used", 5, absl::ZeroDuration(), true));
}

// More than one visit ends.
TEST_F(SessionListTest, WhatHasEndedIsNotThere) {
  for (int i = 0; i < 1000; ++i) Import("alice", absl::StrCat(i));
  clock_.Advance(absl::Minutes(5));
  Import("bob", "lives");
  clock_.Advance(absl::Minutes(5));
  EXPECT_EQ(Pages(std::nullopt, 1000), "bob/lives ");
  EXPECT_EQ(store_.List("alice", std::nullopt, 1000).sessions.size(), 0U);
}

}  // namespace longshort::core::session_list_test
