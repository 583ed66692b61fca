#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/transports/grpc/standard_services.h"

namespace longshort::server::stream_limiter_test {

using testing::ElementsAre;
using testing::IsEmpty;

class StreamLimiterTest : public testing::Test {
 protected:
  absl::StatusOr<int64_t> Add(const std::string& connection, int name) {
    return streams_.Add(connection, [this, name] { replaced_.push_back(name); });
  }

  StreamLimiter streams_{"health watches", 2, 3};
  std::vector<int> replaced_;
};

TEST_F(StreamLimiterTest, LimitsTheStreamsOfAConnection) {
  const auto first = Add("a", 1);
  EXPECT_TRUE(Add("a", 2).ok());
  const absl::Status refused = Add("a", 3).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("this connection has 2 health watches, the maximum per connection"));
  EXPECT_TRUE(Add("b", 4).ok());
  streams_.Remove(*first);
  EXPECT_TRUE(Add("a", 5).ok());
  EXPECT_THAT(replaced_, IsEmpty());
}

TEST_F(StreamLimiterTest, ReplacesTheLongestIdleStream) {
  const auto first = Add("a", 1);
  Add("b", 2).value();
  Add("c", 3).value();
  streams_.Touch(*first);
  Add("d", 4).value();
  EXPECT_THAT(replaced_, ElementsAre(2));
  Add("e", 5).value();
  EXPECT_THAT(replaced_, ElementsAre(2, 3));
  EXPECT_TRUE(Add("b", 6).ok()) << "its only stream was replaced";
  EXPECT_THAT(replaced_, ElementsAre(2, 3, 1));
}

TEST_F(StreamLimiterTest, ReplacesAStreamOfTheConnectionWithTheMost) {
  Add("few", 1).value();
  const auto first = Add("many", 2);
  Add("many", 3).value();
  streams_.Touch(*first);
  Add("new", 4).value();
  EXPECT_THAT(replaced_, ElementsAre(3)) << "the oldest stream is the only one of its connection";
}

TEST_F(StreamLimiterTest, DoesNotReplaceARemovedStream) {
  const auto first = Add("a", 1);
  streams_.Remove(*first);
  streams_.Remove(*first);
  streams_.Touch(*first);
  for (int name = 2; name <= 4; ++name) EXPECT_TRUE(Add(absl::StrCat("connection ", name), name).ok());
  EXPECT_THAT(replaced_, IsEmpty());
}

}  // namespace longshort::server::stream_limiter_test
