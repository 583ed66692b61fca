#include "server/call/stream_events.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <variant>

namespace longshort::server::stream_events_test {

CompletionDelta Delta(int32_t index, const std::string& text, int64_t tokens = 1) {
  CompletionDelta delta;
  delta.index = index;
  delta.text = text;
  delta.token_count = tokens;
  return delta;
}

CompletionEnd End(int32_t index) {
  CompletionEnd end;
  end.index = index;
  return end;
}

const CompletionDelta& DeltaOf(const std::optional<StreamEvent>& event) { return std::get<CompletionDelta>(*event); }

template <typename Event>
bool Is(const std::optional<StreamEvent>& event) {
  return event.has_value() && std::holds_alternative<Event>(*event);
}

// Waiting deltas are merged into the fewest messages:
//   pushed   0:"a"  1:"x"  0:"b"  0:"c"      read   0:"abc"  1:"x"
TEST(StreamEvents, WaitingDeltasOfOneCompletionAreMerged) {
  StreamEvents events(2);
  events.Push(Delta(0, "a"));
  events.Push(Delta(1, "x"));
  events.Push(Delta(0, "b"));
  events.Push(Delta(0, "c"));
  const auto first = events.Pop(), second = events.Pop();
  EXPECT_EQ(DeltaOf(first).text, "abc");
  EXPECT_EQ(DeltaOf(first).token_count, 3);
  EXPECT_EQ(DeltaOf(second).text, "x");
  EXPECT_FALSE(events.Pop().has_value());
}

TEST(StreamEvents, OrderIsStartDeltasEndsSummary) {
  StreamEvents events(1);
  events.Push(StreamSummary());
  events.Push(Delta(0, "a"));
  events.Push(End(0));
  events.Push(StreamStart());
  EXPECT_TRUE(Is<StreamStart>(events.Pop()));
  EXPECT_TRUE(Is<CompletionDelta>(events.Pop()));
  EXPECT_TRUE(Is<CompletionEnd>(events.Pop()));
  EXPECT_TRUE(Is<StreamSummary>(events.Pop()));
  EXPECT_FALSE(events.Pop().has_value());
}

TEST(StreamEvents, MessagesStayBelow64KiB) {
  StreamEvents events(1);
  for (int i = 0; i < 10; ++i) events.Push(Delta(0, std::string(20000, 'x')));
  size_t length = 0, messages = 0;
  while (const auto event = events.Pop()) {
    EXPECT_LT(DeltaOf(event).text.size(), size_t{64} << 10);
    length += DeltaOf(event).text.size();
    ++messages;
  }
  EXPECT_EQ(length, 200000U);
  EXPECT_EQ(messages, 4U);  // three of 20,000 fit in one
}

TEST(StreamEvents, ADeltaWithNothingToShowWaitsForTheNext) {
  StreamEvents events(1);
  events.Push(Delta(0, ""));
  EXPECT_FALSE(events.Pop().has_value());
  events.Push(Delta(0, "\xC3\xA9"));
  EXPECT_EQ(DeltaOf(events.Pop()).token_count, 2);
}

TEST(StreamEvents, ADeltaWithNothingToShowIsNotLostAtTheEnd) {
  StreamEvents events(1);
  events.Push(Delta(0, ""));
  events.Push(End(0));
  EXPECT_EQ(DeltaOf(events.Pop()).token_count, 1);
  EXPECT_TRUE(Is<CompletionEnd>(events.Pop()));
}

TEST(StreamEvents, CompletionsTakeTurns) {
  StreamEvents events(2);
  events.Push(Delta(0, std::string(60000, 'a')));
  events.Push(Delta(0, std::string(60000, 'b')));
  events.Push(Delta(1, "x"));
  EXPECT_EQ(DeltaOf(events.Pop()).index, 0);
  EXPECT_EQ(DeltaOf(events.Pop()).index, 1);
  EXPECT_EQ(DeltaOf(events.Pop()).index, 0);
}

TEST(StreamEvents, WaitingBytesAreCountedUntilTheyArePopped) {
  StreamEvents events(2);
  events.Push(StreamStart());
  EXPECT_EQ(events.waiting_bytes(), 0U);
  for (const int32_t index : {0, 0, 1}) events.Push(Delta(index, std::string(40000, 'x')));
  EXPECT_NEAR(static_cast<double>(events.waiting_bytes()), 120000, 100);
  events.Pop();  // the start
  events.Pop();
  EXPECT_NEAR(static_cast<double>(events.waiting_bytes()), 80000, 100);
  events.Push(Delta(0, ""));  // removed at the end, or merged with another: counted until then
  events.Push(Delta(1, "", 0));
  events.Push(End(0));
  events.Push(End(1));
  while (events.Pop().has_value()) continue;
  EXPECT_EQ(events.waiting_bytes(), 0U);
}

// 100 tokens, each with 5 alternatives: 32 bytes, and a block of the heap of 48 for 5 times 8 bytes.
TEST(StreamEvents, DescribedTokensCountWithWhatTheyTakeInMemory) {
  StreamEvents events(1);
  CompletionDelta delta = Delta(0, "", 100);
  delta.tokens.resize(100);
  for (core::GeneratedToken& token : delta.tokens) token.alternatives.resize(5);
  events.Push(delta);
  EXPECT_NEAR(static_cast<double>(events.waiting_memory()), 100 * (32 + 48), 100);
  events.Push(delta);
  EXPECT_GE(events.waiting_memory(), 200U * (32 + 48)) << "merged, the list of tokens may have room for more";
  EXPECT_LE(events.waiting_memory(), 200U * (2 * 32 + 48) + 100);
  EXPECT_EQ(DeltaOf(events.Pop()).tokens.size(), 200U);
  EXPECT_EQ(events.waiting_memory(), 0U);
}

TEST(StreamEvents, AnEmptyDeltaIsNotCountedForever) {
  StreamEvents events(1);
  events.Push(Delta(0, "", 0));
  events.Push(End(0));
  EXPECT_TRUE(Is<CompletionEnd>(events.Pop()));
  EXPECT_EQ(events.waiting_bytes(), 0U);
}

TEST(StreamEvents, AKeepaliveIsPoppedOnlyIfThereIsNothingElse) {
  StreamEvents events(1);
  events.Push(KeepAlive());
  EXPECT_TRUE(Is<KeepAlive>(events.Pop()));
  events.Push(KeepAlive());
  events.Push(Delta(0, "a"));
  EXPECT_TRUE(Is<CompletionDelta>(events.Pop()));
  EXPECT_FALSE(events.Pop().has_value());
}

}  // namespace longshort::server::stream_events_test
