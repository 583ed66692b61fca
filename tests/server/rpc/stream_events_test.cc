#include "server/rpc/stream_events.h"

#include <gtest/gtest.h>

#include <string>

namespace longshort {
namespace {

v1::CompletionDelta Delta(int32_t index, const std::string& text, int64_t tokens = 1) {
  v1::CompletionDelta delta;
  delta.set_index(index);
  delta.set_text(text);
  delta.set_token_count(tokens);
  return delta;
}

v1::CompletionEnd End(int32_t index) {
  v1::CompletionEnd end;
  end.set_index(index);
  return end;
}

// What waits is said in the fewest messages:
//   pushed   0:"a"  1:"x"  0:"b"  0:"c"      read   0:"abc"  1:"x"
TEST(StreamEvents, WaitingDeltasOfOneCompletionAreMerged) {
  StreamEvents events(2);
  events.PushDelta(Delta(0, "a"));
  events.PushDelta(Delta(1, "x"));
  events.PushDelta(Delta(0, "b"));
  events.PushDelta(Delta(0, "c"));
  const auto first = events.Pop(), second = events.Pop();
  EXPECT_EQ(first->delta().text(), "abc");
  EXPECT_EQ(first->delta().token_count(), 3);
  EXPECT_EQ(second->delta().text(), "x");
  EXPECT_FALSE(events.Pop().has_value());
}

TEST(StreamEvents, OrderIsStartDeltasEndsSummary) {
  StreamEvents events(1);
  events.PushSummary({});
  events.PushDelta(Delta(0, "a"));
  events.PushEnd(End(0));
  events.PushStart({});
  EXPECT_TRUE(events.Pop()->has_start());
  EXPECT_TRUE(events.Pop()->has_delta());
  EXPECT_TRUE(events.Pop()->has_end());
  EXPECT_TRUE(events.Pop()->has_summary());
  EXPECT_FALSE(events.Pop().has_value());
}

TEST(StreamEvents, MessagesStayBelow64KiB) {
  StreamEvents events(1);
  for (int i = 0; i < 10; ++i) events.PushDelta(Delta(0, std::string(20000, 'x')));
  size_t length = 0, messages = 0;
  while (const auto event = events.Pop()) {
    EXPECT_LT(event->ByteSizeLong(), size_t{64} << 10);
    length += event->delta().text().size();
    ++messages;
  }
  EXPECT_EQ(length, 200000U);
  EXPECT_EQ(messages, 4U);  // three of 20,000 fit in one
}

TEST(StreamEvents, ADeltaWithNothingToShowWaitsForTheNext) {
  StreamEvents events(1);
  events.PushDelta(Delta(0, ""));
  EXPECT_FALSE(events.Pop().has_value());
  events.PushDelta(Delta(0, "\xC3\xA9"));
  EXPECT_EQ(events.Pop()->delta().token_count(), 2);
}

TEST(StreamEvents, ADeltaWithNothingToShowIsNotLostAtTheEnd) {
  StreamEvents events(1);
  events.PushDelta(Delta(0, ""));
  events.PushEnd(End(0));
  EXPECT_EQ(events.Pop()->delta().token_count(), 1);
  EXPECT_TRUE(events.Pop()->has_end());
}

TEST(StreamEvents, CompletionsTakeTurns) {
  StreamEvents events(2);
  events.PushDelta(Delta(0, std::string(60000, 'a')));
  events.PushDelta(Delta(0, std::string(60000, 'b')));
  events.PushDelta(Delta(1, "x"));
  EXPECT_EQ(events.Pop()->delta().index(), 0);
  EXPECT_EQ(events.Pop()->delta().index(), 1);
  EXPECT_EQ(events.Pop()->delta().index(), 0);
}

TEST(StreamEvents, WhatWaitsIsCountedUntilItIsTaken) {
  StreamEvents events(2);
  events.PushStart({});
  EXPECT_EQ(events.waiting_bytes(), 0U);
  for (const int32_t index : {0, 0, 1}) events.PushDelta(Delta(index, std::string(40000, 'x')));
  EXPECT_NEAR(static_cast<double>(events.waiting_bytes()), 120000, 100);
  events.Pop();  // the start
  events.Pop();
  EXPECT_NEAR(static_cast<double>(events.waiting_bytes()), 80000, 100);
  events.PushDelta(Delta(0, ""));  // dropped at the end or taken with another, but not forgotten
  events.PushDelta(Delta(1, "", 0));
  events.PushEnd(End(0));
  events.PushEnd(End(1));
  while (events.Pop().has_value()) continue;
  EXPECT_EQ(events.waiting_bytes(), 0U);
}

TEST(StreamEvents, ADeltaOfNothingIsNotCountedForEver) {
  StreamEvents events(1);
  events.PushDelta(Delta(0, "", 0));
  events.PushEnd(End(0));
  EXPECT_TRUE(events.Pop()->has_end());
  EXPECT_EQ(events.waiting_bytes(), 0U);
}

TEST(StreamEvents, AKeepaliveIsSaidOnlyWhereNothingElseIs) {
  StreamEvents events(1);
  events.PushKeepAlive();
  EXPECT_TRUE(events.Pop()->has_keep_alive());
  events.PushKeepAlive();
  events.PushDelta(Delta(0, "a"));
  EXPECT_TRUE(events.Pop()->has_delta());
  EXPECT_FALSE(events.Pop().has_value());
}

}  // namespace
}  // namespace longshort
