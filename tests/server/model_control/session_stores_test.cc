#include "server/model_control/session_stores.h"

#include <gtest/gtest.h>

namespace longshort::server::session_stores_test {

std::unique_ptr<core::SessionObserver> UnheardOf() { return nullptr; }

TEST(SessionStores, EnginesOfOneNameAndTheSameWeightsShareOneForAsLongAsOneOfThemLives) {
  const RealClock clock;
  SessionStores stores;
  std::shared_ptr<core::SessionStore> first = stores.Of("m", "weights", clock, {}, UnheardOf);
  const core::SessionKey talk = {.client = "", .id = "talk"};
  ASSERT_TRUE(first->Import(talk, {.tokens = {1, 2}, .parked = {}}).ok());
  std::shared_ptr<core::SessionStore> next = stores.Of("m", "weights", clock, {}, UnheardOf);
  EXPECT_EQ(next, first);
  EXPECT_NE(stores.Of("m", "other weights", clock, {}, UnheardOf), first);
  EXPECT_NE(stores.Of("another", "weights", clock, {}, UnheardOf), first);
  first.reset();
  EXPECT_EQ(stores.Of("m", "weights", clock, {}, UnheardOf), next);
  next.reset();
  EXPECT_EQ(stores.Of("m", "weights", clock, {}, UnheardOf)->counts().sessions, 0);
}

}  // namespace longshort::server::session_stores_test
