#include "models/device/library.h"

#include <new>
#include <random>
#include <stdexcept>
#include <string>

#include "ATen/ops/empty.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/zeros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::library_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

template <typename Function>
absl::Status ErrorOf(Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    return LibraryError("in a test", error);
  }
  return absl::OkStatus();
}

TEST(LibraryError, SaysWhatWasWrongInALine) {
  const absl::Status status = ErrorOf([] { at::matmul(at::zeros({2, 3}), at::zeros({4, 5})); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("LibTorch failed in a test: mat1 and mat2 shapes cannot be multiplied"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("frame #"))) << "no addresses of the stack";
  EXPECT_EQ(ErrorOf([] { throw std::runtime_error("odd"); }), absl::InternalError("LibTorch failed in a test: odd"));
}

TEST(LibraryError, NoMemoryIsNoDefect) {
  EXPECT_EQ(ErrorOf([] { throw std::bad_alloc(); }).code(), absl::StatusCode::kResourceExhausted);
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends a process that asks for so much";
#endif
  const absl::Status status = ErrorOf([] { at::empty({int64_t{1} << 50}); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

constexpr int kTeam = 4;

// Runs `steps` steps of `work` that take `alone` or `team` seconds each; a team gets this share of its CPUs. Returns
// how many steps one thread ran.
int StepsAlone(ThreadChoice& choice, int steps, int64_t work, double team, double alone, double share = 1) {
  int count = 0;
  for (int i = 0; i < steps; ++i) {
    const bool is_alone = choice.Next(work) == 1;
    choice.Record(work, is_alone ? alone : team, is_alone ? alone : share * kTeam * team);
    count += is_alone ? 1 : 0;
  }
  return count;
}

TEST(ThreadChoice, OneThreadStaysOne) {
  ThreadChoice choice(1);
  EXPECT_EQ(StepsAlone(choice, 100, 7, 1e-4, 1e-4), 100);
}

TEST(ThreadChoice, ASmallStepGoesToWhatIsFaster) {
  ThreadChoice faster_alone(kTeam), faster_together(kTeam);
  EXPECT_GE(StepsAlone(faster_alone, 1000, 1, 5e-4, 3e-4), 990);
  EXPECT_LE(StepsAlone(faster_together, 1000, 1, 3e-4, 5e-4), 10);
}

TEST(ThreadChoice, ATeamThatIsLittleFasterIsNotWorthItsProcessors) {
  ThreadChoice choice(kTeam);
  EXPECT_GE(StepsAlone(choice, 1000, 16, 1.8e-3, 2e-3), 980);
}

TEST(ThreadChoice, ALongStepIsNeverTriedAloneWhileTheTeamIsAsFastAsEver) {
  ThreadChoice choice(kTeam);
  EXPECT_EQ(StepsAlone(choice, 10'000, 512, 20e-3, 60e-3), 0);
  EXPECT_EQ(StepsAlone(choice, 10'000, 512, 60e-3, 61e-3), 0) << "3 times as long: a team of 4 may still be faster";
}

TEST(ThreadChoice, ATeamThatOthersKeepFromItsProcessorsIsLeftUntilItIsFasterAgain) {
  ThreadChoice choice(kTeam);
  StepsAlone(choice, 100, 16, 5e-3, 15e-3);
  EXPECT_GE(StepsAlone(choice, 1000, 16, 300e-3, 20e-3), 980);
  // The longest wait for a trial is 1,024 steps.
  StepsAlone(choice, 1100, 16, 5e-3, 15e-3);
  EXPECT_EQ(StepsAlone(choice, 1000, 16, 5e-3, 15e-3), 0);
}

TEST(ThreadChoice, ATeamThatNeverHadItsProcessorsIsLeftToo) {
  ThreadChoice choice(kTeam);
  EXPECT_GE(StepsAlone(choice, 1000, 16, 300e-3, 20e-3, 0.3), 980);
  EXPECT_LE(StepsAlone(choice, 1000, 512, 300e-3, 400e-3, 0.3), 10) << "one thread was tried, and is slower";
  EXPECT_EQ(StepsAlone(choice, 1000, 4096, 1, 2, 0.5), 0) << "two processors: twice as long would be too long a trial";
}

TEST(ThreadChoice, ATrialThatTakesLongIsRare) {
  ThreadChoice choice(kTeam);
  StepsAlone(choice, 20, 1, 2, 40e-3, 0.3);
  EXPECT_GE(StepsAlone(choice, 1600, 1, 2, 40e-3, 0.3), 1598) << "50 times as long, after 800 steps";
}

TEST(ThreadChoice, AFewSlowStepsOfTheTeamChangeNothing) {
  ThreadChoice choice(kTeam);
  StepsAlone(choice, 100, 16, 5e-3, 15e-3);
  // Three slow steps, then one thread is tried, and stays.
  EXPECT_EQ(StepsAlone(choice, 10, 16, 100e-3, 15e-3), 7) << "three slow steps of five are believed";
  StepsAlone(choice, 1100, 16, 5e-3, 15e-3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(StepsAlone(choice, 2, 16, 500e-3, 15e-3), 0) << i;
    EXPECT_EQ(StepsAlone(choice, 8, 16, 5e-3, 15e-3), 0) << i;
  }
}

// A virtual processor has a fast and a slow state, each for some tenths to tens of seconds, and single steps are
// delayed by others.
TEST(ThreadChoice, ATeamThatIsFasterInEachStateOfTheMachineRunsNearlyAllSteps) {
  std::mt19937_64 random(7);
  ThreadChoice choice(2);
  const int steps = 20'000;
  int alone = 0;
  double slowness = 1;
  for (int i = 0, left = 0; i < steps; ++i, --left) {
    if (left == 0) {
      slowness = slowness == 1 ? 4.3 : 1;
      left = std::uniform_int_distribution(5, 500)(random);
    }
    const double delay = random() % 20 == 0 ? 110e-3 : 0;
    alone += StepsAlone(choice, 1, 1, slowness * 20e-3 + delay, slowness * 35e-3 + delay);
  }
  EXPECT_LE(alone, steps / 10);
}

TEST(ThreadChoice, SizesLearnApart) {
  ThreadChoice choice(kTeam);
  for (int i = 0; i < 1000; ++i) {
    StepsAlone(choice, 1, 1, 5e-4, 3e-4);
    EXPECT_EQ(StepsAlone(choice, 1, 64, 4e-3, 12e-3), 0);
  }
  EXPECT_EQ(choice.Next(1), 1);
}

}  // namespace longshort::models::library_test
