#include "server/lifecycle/session_stores.h"

#include <gtest/gtest.h>

namespace longshort {
namespace {

TEST(SessionStores, EnginesOfOneNameAndTheSameWeightsShareOneForAsLongAsOneOfThemLives) {
  const RealClock clock;
  SessionStores stores;
  std::shared_ptr<SessionStore> first = stores.Of("m", "weights", clock, {});
  const SessionKey talk = {.client = "", .id = "talk"};
  ASSERT_TRUE(first->Import(talk, {.tokens = {1, 2}, .parked = {}}).ok());
  std::shared_ptr<SessionStore> next = stores.Of("m", "weights", clock, {});
  EXPECT_EQ(next, first);
  EXPECT_NE(stores.Of("m", "other weights", clock, {}), first);
  EXPECT_NE(stores.Of("another", "weights", clock, {}), first);
  first.reset();
  EXPECT_EQ(stores.Of("m", "weights", clock, {}), next);
  next.reset();
  EXPECT_EQ(stores.Of("m", "weights", clock, {})->counts().sessions, 0);
}

}  // namespace
}  // namespace longshort
