#include "server/call/call_gate.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace longshort::server::call_gate_test {

TEST(CallGate, AdmitsNoCallOnceClosed) {
  CallGate gate;
  EXPECT_TRUE(gate.Enter());
  gate.Close();
  EXPECT_FALSE(gate.Enter());
}

TEST(CallGate, WaitsForTheCallsInside) {
  CallGate gate;
  ASSERT_TRUE(gate.Enter());
  std::thread leaver([&] { gate.Leave(); });
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now() + absl::Minutes(5)), 0);
  leaver.join();
}

TEST(CallGate, ReturnsHowManyAreLeftAtTheDeadline) {
  CallGate gate;
  gate.Enter();
  gate.Enter();
  gate.Leave();
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now()), 1);
}

TEST(CallGate, ACallThatEndsUnavailableAfterTheCloseIsCutOff) {
  CallGate gate;
  for (int i = 0; i < 4; ++i) gate.Enter();
  gate.Leave(/*unavailable=*/true);  // before the stop
  gate.Close();
  gate.Leave(/*unavailable=*/true);
  gate.Leave();
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now()), 2) << "one ended UNAVAILABLE, one is still inside";
}

TEST(CallGate, AdmitsCallsWhileItIsStopping) {
  CallGate gate;
  gate.BeginStop();
  EXPECT_TRUE(gate.Enter());
  EXPECT_TRUE(gate.Enter());
  gate.Leave(/*unavailable=*/true);
  EXPECT_EQ(gate.traffic().begun, 2);
  EXPECT_EQ(gate.traffic().inside, 1);
  gate.Close();
  EXPECT_FALSE(gate.Enter());
  gate.Leave();
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now()), 1) << "the call that ended UNAVAILABLE while the gate was stopping";
}

TEST(CallGate, CountsIdleAndResumedCalls) {
  CallGate gate;
  gate.Enter();
  {
    CallGate::IdleNote note(gate);
    note.Set(true);
    note.Set(true);
    EXPECT_EQ(gate.traffic().idle, 1);
    EXPECT_EQ(gate.traffic().begun, 1);
    note.Set(false);
    EXPECT_EQ(gate.traffic().idle, 0);
    EXPECT_EQ(gate.traffic().begun, 2) << "polling detects the resumed call";
    note.Set(true);
  }
  EXPECT_EQ(gate.traffic().idle, 0) << "the call is over";
}

TEST(CallGate, NotifiesOfTheStopBeforeTheClose) {
  CallGate gate;
  int stopping = 0, closed = 0;
  gate.WhenStopping([&stopping] { ++stopping; });
  gate.WhenClosed([&closed] { ++closed; });
  gate.BeginStop();
  EXPECT_EQ(stopping, 1);
  EXPECT_EQ(closed, 0);
  gate.WhenStopping([&stopping] { ++stopping; });
  EXPECT_EQ(stopping, 2) << "the gate is already stopping";
  gate.Close();
  EXPECT_EQ(stopping, 2);
  EXPECT_EQ(closed, 1);
}

TEST(CallGate, ACloseWithoutAStopNotifiesOfBoth) {
  CallGate gate;
  int stopping = 0;
  gate.WhenStopping([&stopping] { ++stopping; });
  gate.Close();
  EXPECT_EQ(stopping, 1);
}

TEST(CallGate, NotifiesOfTheCloseOnce) {
  CallGate gate;
  int notified = 0, removed = 0, late = 0;
  gate.WhenClosed([&notified] { ++notified; });
  gate.RemoveWatch(gate.WhenClosed([&removed] { ++removed; }));
  EXPECT_EQ(notified, 0);
  gate.Close();
  gate.Close();
  EXPECT_EQ(notified, 1);
  EXPECT_EQ(removed, 0);
  gate.WhenClosed([&late] { ++late; });
  EXPECT_EQ(late, 1);
}

}  // namespace longshort::server::call_gate_test
