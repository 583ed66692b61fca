#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/transports/grpc/standard_services.h"

namespace longshort::server::health_registry_test {

using testing::ElementsAre;
using testing::Optional;
using testing::Pair;

TEST(HealthRegistry, ReturnsTheLastStatus) {
  HealthRegistry registry;
  EXPECT_EQ(registry.Get("m"), std::nullopt);
  registry.Set("m", true);
  EXPECT_THAT(registry.Get("m"), Optional(true));
  registry.Set("m", false);
  registry.Set("n", true);
  EXPECT_THAT(registry.List(), ElementsAre(Pair("m", false), Pair("n", true)));
}

TEST(HealthRegistry, NothingServesOnceTheServerStops) {
  HealthRegistry registry;
  registry.Set("m", true);
  registry.StopServing();
  registry.Set("n", true);
  EXPECT_THAT(registry.List(), ElementsAre(Pair("m", false), Pair("n", false)));
}

TEST(HealthRegistry, NotifiesTheWatchersOfANameWhenItMayHaveChanged) {
  HealthRegistry registry;
  int callbacks = 0;
  const int64_t watch = registry.Watch("m", [&] {
    ++callbacks;
    registry.Get("m");  // as watchers do
  });
  registry.Set("n", true);
  EXPECT_EQ(callbacks, 0);
  registry.Set("m", true);
  EXPECT_EQ(callbacks, 1);
  registry.StopServing();
  EXPECT_EQ(callbacks, 2);
  registry.RemoveWatch(watch);
  registry.Set("m", true);
  EXPECT_EQ(callbacks, 2);
}

}  // namespace longshort::server::health_registry_test
