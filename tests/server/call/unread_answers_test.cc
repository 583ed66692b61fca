#include "server/call/unread_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "core/schedule/refusal.h"
#include "tests/base/status_matchers.h"

namespace longshort::server::unread_answers_test {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr absl::Duration kPatience = absl::Seconds(30);

// A budget of 16 MiB, of which calls may use 14; the rest is for answers of ended calls.
class UnreadAnswersTest : public ::testing::Test {
 protected:
  UnreadAnswersTest() { EXPECT_TRUE(thread_.Start("the thread of the test").ok()); }

  // An account whose end is noted with the name of the call.
  std::unique_ptr<UnreadAnswers::Account> Call(const std::string& client, const std::string& name) {
    return std::make_unique<UnreadAnswers::Account>(answers_, [this, client, name] {
      return UnreadAnswers::Owner{.client = client, .end = [this, name](const absl::Status& why) {
                                    const MutexLock lock(mutex_);
                                    ended_[name] = why;
                                  }};
    });
  }
  // The calls that have been ended, with the reason.
  std::map<std::string, absl::Status> Ended() {
    absl::Notification done;
    thread_.Post([&done] { done.Notify(); });
    done.WaitForNotification();
    const MutexLock lock(mutex_);
    return ended_;
  }

  const std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(16 * kMiB, Budget::Names{"answers", "bytes"});
  Mutex mutex_;
  std::map<std::string, absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  TaskThread thread_;
  const std::shared_ptr<Budget> calls_ = std::make_shared<Budget>(16 * kMiB, Budget::Names{"calls", "bytes"});
  UnreadAnswers answers_{budget_, calls_, kPatience, thread_};
};

TEST_F(UnreadAnswersTest, ACallReleasesWhatItHolds) {
  {
    const auto call = Call("a", "one");
    EXPECT_THAT(call->Hold(3 * kMiB), IsOk());
    call->SetHeld(2 * kMiB);
    EXPECT_EQ(budget_->held(), 2 * kMiB);
  }
  EXPECT_EQ(budget_->held(), 0);
  EXPECT_THAT(Ended(), ::testing::IsEmpty());
}

TEST_F(UnreadAnswersTest, TheLargestCallOfTheLargestClientEndsForOthers) {
  const auto small = Call("greedy", "small"), large = Call("greedy", "large"), larger = Call("modest", "larger");
  EXPECT_THAT(small->Hold(4 * kMiB), IsOk());
  EXPECT_THAT(large->Hold(5 * kMiB), IsOk());
  EXPECT_THAT(larger->Hold(5 * kMiB), IsOk());
  const auto next = Call("new", "next");
  EXPECT_THAT(next->Hold(1 * kMiB), IsOk());
  const auto ended = Ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended.begin()->first, "large");
  EXPECT_TRUE(absl::IsResourceExhausted(ended.begin()->second));
  EXPECT_TRUE(core::GetRefusal(ended.begin()->second).has_value());
}

TEST_F(UnreadAnswersTest, ACallIsRefusedThatWouldBeTheNextToEnd) {
  const auto first = Call("modest", "first"), second = Call("greedy", "second");
  EXPECT_THAT(first->Hold(6 * kMiB), IsOk());
  EXPECT_THAT(second->Hold(7 * kMiB), IsOk());
  const auto third = Call("greedy", "third");
  EXPECT_THAT(third->Hold(1 * kMiB), IsOk());
  const absl::Status refused = third->Hold(8 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_TRUE(core::GetRefusal(refused).has_value());
  EXPECT_EQ(third->bytes(), 1 * kMiB);
  EXPECT_THAT(Ended(), ::testing::IsEmpty());
}

// Else a client that asks for many answers at once would end all others before their memory is back.
TEST_F(UnreadAnswersTest, MemoryOfEndedCallsIsNotGivenTwice) {
  const auto first = Call("greedy", "first"), second = Call("greedy", "second");
  EXPECT_THAT(first->Hold(7 * kMiB), IsOk());
  EXPECT_THAT(second->Hold(7 * kMiB), IsOk());
  const auto next = Call("modest", "next"), last = Call("modest", "last");
  EXPECT_THAT(next->Hold(2 * kMiB), IsOk());
  EXPECT_EQ(Ended().size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(last->Hold(1 * kMiB))) << "14 + 2 MiB are held";
  first->SetHeld(0);
  second->SetHeld(0);
  EXPECT_THAT(last->Hold(1 * kMiB), IsOk());
}

TEST_F(UnreadAnswersTest, ManySmallAnswersAreCountedAndCanBeEnded) {
  std::vector<std::unique_ptr<UnreadAnswers::Account>> calls;
  for (int i = 0; i < 1000; ++i) {
    calls.push_back(Call("greedy", std::to_string(i)));
    if (!calls.back()->Hold(16 << 10).ok()) break;
  }
  EXPECT_LE(budget_->held(), 16 * kMiB);
  EXPECT_THAT(Call("modest", "one")->Hold(16 << 10), IsOk());
}

TEST_F(UnreadAnswersTest, AnAnswerMayWaitForThePatience) {
  const auto waiting = Call("a", "waiting"), working = Call("a", "working"), late = Call("a", "late");
  for (const auto* call : {&waiting, &working, &late}) EXPECT_THAT((*call)->Hold(kMiB), IsOk());
  waiting->SetWaiting(true);
  late->SetWaiting(true);
  answers_.EndImpatient(MonotonicNow() + kPatience - absl::Seconds(1));
  EXPECT_THAT(Ended(), ::testing::IsEmpty());
  late->SetWaiting(false);
  answers_.EndImpatient(MonotonicNow() + kPatience);
  const auto ended = Ended();
  ASSERT_EQ(ended.size(), 1u) << "the others wait for no client";
  EXPECT_EQ(ended.begin()->first, "waiting");
  EXPECT_TRUE(absl::IsCancelled(ended.begin()->second));
}

TEST_F(UnreadAnswersTest, ThePatienceShortensBeyondHalfOfTheMemory) {
  const auto waiting = Call("a", "waiting"), other = Call("b", "other");
  EXPECT_THAT(waiting->Hold(kMiB), IsOk());
  waiting->SetWaiting(true);
  EXPECT_THAT(other->Hold(6 * kMiB), IsOk());
  answers_.EndImpatient(MonotonicNow() + kPatience / 2);
  EXPECT_THAT(Ended(), ::testing::IsEmpty());
  EXPECT_THAT(other->Hold(12 * kMiB), IsOk());
  answers_.EndImpatient(MonotonicNow() + kPatience / 2);
  const auto ended = Ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(absl::IsResourceExhausted(ended.begin()->second));
}

TEST_F(UnreadAnswersTest, SmallAnswersEndSoonWhileTheMemoryOfCallsIsFull) {
  const auto before = Call("a", "before");
  before->SetHeld(1);
  EXPECT_FALSE(before->is_listed());
  const Budget::Share others = *Budget::Take(calls_, 14 * kMiB);
  const auto call = Call("a", "small");
  call->SetHeld(1);
  EXPECT_TRUE(call->is_listed());
  call->SetWaiting(true);
  answers_.EndImpatient(MonotonicNow());
  EXPECT_THAT(Ended(), ::testing::IsEmpty());
  answers_.EndImpatient(MonotonicNow() + absl::Seconds(2));
  EXPECT_EQ(Ended().size(), 1);
}

}  // namespace longshort::server::unread_answers_test
