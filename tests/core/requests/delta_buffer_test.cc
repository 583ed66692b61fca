#include "core/requests/language_model_jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::delta_buffer_test {

GeneratedToken Token(int32_t id) { return {.token = id, .log_probability = 0, .alternatives = {}}; }

std::vector<int32_t> Ids(const GenerationDelta& delta) {
  std::vector<int32_t> ids;
  for (const GeneratedToken& token : delta.tokens) ids.push_back(token.token);
  return ids;
}

TEST(DeltaBuffer, DeliversAtOnceWithoutStopStrings) {
  DeltaBuffer buffer({});
  const GenerationDelta delta = buffer.Append(Token(7), "ab");
  EXPECT_EQ(delta.bytes, "ab");
  EXPECT_THAT(Ids(delta), testing::ElementsAre(7));
}

// Stop string "bcd":   token 1 "ab"   token 2 "c"   token 3 "x"
//                      a|b             |c            |x
// "a" is free at once and brings token 1; "bc" waits for the "x".
TEST(DeltaBuffer, DeliversATokenWithTheFirstOfItsBytes) {
  DeltaBuffer buffer({"bcd"});
  const GenerationDelta first = buffer.Append(Token(1), "ab");
  EXPECT_EQ(first.bytes, "a");
  EXPECT_THAT(Ids(first), testing::ElementsAre(1));
  const GenerationDelta second = buffer.Append(Token(2), "c");
  EXPECT_EQ(second.bytes, "");
  EXPECT_THAT(Ids(second), testing::IsEmpty());
  const GenerationDelta third = buffer.Append(Token(3), "x");
  EXPECT_EQ(third.bytes, "bcx");
  EXPECT_THAT(Ids(third), testing::ElementsAre(2, 3));
}

TEST(DeltaBuffer, NeverDeliversTokensThatBeginInTheStopString) {
  DeltaBuffer buffer({"bcd"});
  buffer.Append(Token(1), "ab");
  buffer.Append(Token(2), "c");
  const GenerationDelta last = buffer.Append(Token(3), "de");
  EXPECT_EQ(last.bytes, "");
  EXPECT_THAT(Ids(last), testing::IsEmpty());
  ASSERT_NE(buffer.stop_string(), nullptr);
  EXPECT_EQ(*buffer.stop_string(), "bcd");
}

TEST(DeltaBuffer, FlushDeliversWhatWasHeld) {
  DeltaBuffer buffer({"bcd"});
  buffer.Append(Token(1), "b");
  buffer.Append(Token(2), "c");
  const GenerationDelta rest = buffer.Flush();
  EXPECT_EQ(rest.bytes, "bc");
  EXPECT_THAT(Ids(rest), testing::ElementsAre(1, 2));
}

TEST(DeltaBuffer, KeepsTokensWithoutBytesInTheirPlace) {
  DeltaBuffer buffer({"bc"});
  EXPECT_THAT(Ids(buffer.Append(Token(1), "")), testing::ElementsAre(1));
  EXPECT_THAT(Ids(buffer.Append(Token(2), "b")), testing::IsEmpty());
  EXPECT_THAT(Ids(buffer.Append(Token(3), "")), testing::IsEmpty());
  EXPECT_THAT(Ids(buffer.Append(Token(4), "x")), testing::ElementsAre(2, 3, 4));
}

}  // namespace longshort::core::delta_buffer_test
