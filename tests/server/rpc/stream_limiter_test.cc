#include "server/rpc/stream_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace longshort::server::stream_limiter_test {

using testing::ElementsAre;
using testing::IsEmpty;

class StreamLimiterTest : public testing::Test {
 protected:
  absl::StatusOr<int64_t> Add(const std::string& connection, int name) {
    return streams_.Add(connection, [this, name] { gave_way_.push_back(name); });
  }

  StreamLimiter streams_{2, 3};
  std::vector<int> gave_way_;
};

TEST_F(StreamLimiterTest, AConnectionHoldsNoMoreThanItMay) {
  const auto first = Add("a", 1);
  EXPECT_TRUE(Add("a", 2).ok());
  const absl::Status refused = Add("a", 3).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("this connection holds 2"));
  EXPECT_TRUE(Add("b", 4).ok());
  streams_.Remove(*first);
  EXPECT_TRUE(Add("a", 5).ok());
  EXPECT_THAT(gave_way_, IsEmpty());
}

TEST_F(StreamLimiterTest, TheOneThatIsSilentForLongestGivesWay) {
  const auto first = Add("a", 1);
  Add("b", 2).value();
  Add("c", 3).value();
  streams_.Touch(*first);
  Add("d", 4).value();
  EXPECT_THAT(gave_way_, ElementsAre(2));
  Add("e", 5).value();
  EXPECT_THAT(gave_way_, ElementsAre(2, 3));
  EXPECT_TRUE(Add("b", 6).ok()) << "it holds none any more";
  EXPECT_THAT(gave_way_, ElementsAre(2, 3, 1));
}

TEST_F(StreamLimiterTest, WhoHoldsMuchGivesWayToWhoHoldsLittle) {
  Add("few", 1).value();
  const auto first = Add("many", 2);
  Add("many", 3).value();
  streams_.Touch(*first);
  Add("new", 4).value();
  EXPECT_THAT(gave_way_, ElementsAre(3)) << "the oldest is of a connection that has no more";
}

TEST_F(StreamLimiterTest, WhatIsGoneIsNoneOfThem) {
  const auto first = Add("a", 1);
  streams_.Remove(*first);
  streams_.Remove(*first);
  streams_.Touch(*first);
  for (int name = 2; name <= 4; ++name) EXPECT_TRUE(Add(absl::StrCat("connection ", name), name).ok());
  EXPECT_THAT(gave_way_, IsEmpty());
}

}  // namespace longshort::server::stream_limiter_test
