#include "server/call/message_size.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

#include "longshort/v1/inference.pb.h"
#include "open_inference/v2/service.pb.h"

namespace longshort::server::message_size_test {

constexpr int64_t kMany = 1000;

template <typename Message>
MessageSize Measure(const std::string& bytes, int64_t max_elements = kMany) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  return MeasureMessage(stream, *Message::descriptor(), max_elements);
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(MessageSize, CountsMessagesAndStringsAtEveryDepth) {
  v1::ScoreTextRequest request;
  request.mutable_model()->set_name("a");       // 2
  request.add_inputs()->set_text("some text");  // 2
  request.add_inputs()->mutable_ids();          // 2
  request.set_truncate(true);
  request.set_top_k(3);
  const MessageSize size = Measure<v1::ScoreTextRequest>(request.SerializeAsString());
  EXPECT_EQ(size.elements, 6);
}

TEST(MessageSize, NumbersAreNoElements) {
  v1::TokenizeRequest ids;
  for (int i = 0; i < 100; ++i) ids.mutable_input()->mutable_ids()->add_ids(i);
  EXPECT_EQ(Measure<v1::TokenizeRequest>(ids.SerializeAsString()).elements, 2);

  inference::ModelInferRequest infer;
  for (int i = 0; i < 100; ++i) infer.mutable_inputs()->Add()->mutable_contents()->add_fp32_contents(1);
  infer.mutable_inputs(0)->mutable_contents()->add_bool_contents(true);
  EXPECT_EQ(Measure<inference::ModelInferRequest>(infer.SerializeAsString()).elements, 200);
  EXPECT_EQ(Measure<v1::TokenIds>(Repeat("\x08\x05", 2000)).elements, 0) << "each with its own tag";
}

TEST(MessageSize, UnknownFieldsAndGroupsCount) {
  EXPECT_EQ(Measure<v1::TokenIds>(Repeat(std::string("\x78\x00", 2), 300)).elements, 300) << "numbers";
  EXPECT_EQ(Measure<v1::TokenIds>(Repeat(std::string("\x7a\x00", 2), 300)).elements, 300) << "strings";
  EXPECT_EQ(Measure<v1::TokenIds>(Repeat("\x7b\x7c", 300)).elements, 300) << "groups";
  EXPECT_EQ(Measure<v1::TokenIds>(Repeat("\x7b", 50) + Repeat("\x7c", 50)).elements, 50) << "groups in groups";
}

TEST(MessageSize, StopsBeyondTheLimitAndWhereTheParserStops) {
  const std::string empty_inputs = Repeat(std::string("\x12\x00", 2), 100'000);
  EXPECT_EQ(Measure<v1::ScoreTextRequest>(empty_inputs).elements, kMany + 1);
  const std::string malformed = std::string("\x12\x00\x07\x00", 4) + empty_inputs;
  EXPECT_FALSE(v1::ScoreTextRequest().ParseFromString(malformed));
  EXPECT_EQ(Measure<v1::ScoreTextRequest>(malformed).elements, 1);
  const std::string deep = Repeat("\x7b", 5000);
  EXPECT_FALSE(v1::ScoreTextRequest().ParseFromString(deep));
  EXPECT_LE(Measure<v1::ScoreTextRequest>(deep).elements, 101);
  const std::string cut = std::string("\x12\xff\xff\xff\x7f", 5);
  EXPECT_FALSE(v1::ScoreTextRequest().ParseFromString(cut));
  EXPECT_EQ(Measure<v1::ScoreTextRequest>(cut).elements, 1);
}

// What is promised is not exceeded, whatever is repeated.
TEST(MessageSize, AMessageTakesNoMoreThanItSays) {
  constexpr int kTimes = 10'000;
  inference::ModelInferRequest infer;
  for (int i = 0; i < kTimes; ++i) infer.add_inputs()->add_shape(1);
  for (int i = 0; i < kTimes; ++i) infer.add_outputs()->set_name("output");
  for (int i = 0; i < kTimes; ++i) (*infer.mutable_parameters())[std::to_string(i)].set_int64_param(i);
  const std::string bytes = infer.SerializeAsString();
  inference::ModelInferRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_LE(static_cast<int64_t>(parsed.SpaceUsedLong()),
            Measure<inference::ModelInferRequest>(bytes, 10 * kTimes).memory);
}

}  // namespace longshort::server::message_size_test
