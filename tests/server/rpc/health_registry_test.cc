#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rpc/health.h"

namespace longshort::server::health_registry_test {

using testing::ElementsAre;
using testing::Optional;
using testing::Pair;

TEST(HealthRegistry, ReturnsTheLastStatus) {
  HealthRegistry board;
  EXPECT_EQ(board.Get("m"), std::nullopt);
  board.Set("m", true);
  EXPECT_THAT(board.Get("m"), Optional(true));
  board.Set("m", false);
  board.Set("n", true);
  EXPECT_THAT(board.List(), ElementsAre(Pair("m", false), Pair("n", true)));
}

TEST(HealthRegistry, NothingServesOnceTheServerStops) {
  HealthRegistry board;
  board.Set("m", true);
  board.StopServing();
  board.Set("n", true);
  EXPECT_THAT(board.List(), ElementsAre(Pair("m", false), Pair("n", false)));
}

TEST(HealthRegistry, NotifiesTheWatchersOfANameWhenItMayHaveChanged) {
  HealthRegistry board;
  int looks = 0;
  const int64_t watch = board.Watch("m", [&] {
    ++looks;
    board.Get("m");  // as watchers do
  });
  board.Set("n", true);
  EXPECT_EQ(looks, 0);
  board.Set("m", true);
  EXPECT_EQ(looks, 1);
  board.StopServing();
  EXPECT_EQ(looks, 2);
  board.Forget(watch);
  board.Set("m", true);
  EXPECT_EQ(looks, 2);
}

}  // namespace longshort::server::health_registry_test
