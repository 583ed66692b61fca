#include "server/admission/call_gate.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"

namespace longshort {
namespace {

TEST(CallGate, LetsNobodyInOnceClosed) {
  CallGate gate;
  EXPECT_TRUE(gate.Enter());
  gate.Close();
  EXPECT_FALSE(gate.Enter());
}

TEST(CallGate, WaitsForThoseInside) {
  CallGate gate;
  ASSERT_TRUE(gate.Enter());
  std::thread leaver([&] {
    absl::SleepFor(absl::Milliseconds(20));
    gate.Leave();
  });
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now() + absl::Seconds(30)), 0);
  leaver.join();
}

TEST(CallGate, TellsHowManyAreLeftAtTheDeadline) {
  CallGate gate;
  gate.Enter();
  gate.Enter();
  gate.Leave();
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now()), 1);
}

TEST(CallGate, WhoLeavesUnavailableOnceItIsClosedWasCutOff) {
  CallGate gate;
  for (int i = 0; i < 4; ++i) gate.Enter();
  gate.Leave(/*unavailable=*/true);  // for some other reason
  gate.Close();
  gate.Leave(/*unavailable=*/true);
  gate.Leave();
  EXPECT_EQ(gate.WaitUntilEmpty(absl::Now()), 2) << "one was told, one is left";
}

TEST(CallGate, TellsOnceWhoAskedWhenItCloses) {
  CallGate gate;
  int told = 0, forgotten = 0, late = 0;
  gate.WhenClosed([&told] { ++told; });
  gate.Forget(gate.WhenClosed([&forgotten] { ++forgotten; }));
  EXPECT_EQ(told, 0);
  gate.Close();
  gate.Close();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(forgotten, 0);
  gate.WhenClosed([&late] { ++late; });
  EXPECT_EQ(late, 1);
}

}  // namespace
}  // namespace longshort
