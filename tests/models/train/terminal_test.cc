#include "models/train/terminal.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::terminal_test {

TEST(TrainingProgress, HighRatesAreWholeNumbers) {
  TrainingProgress progress(0, 1, {.name = "tokens", .per_step = 1'000'000'000, .loss = "of the variance"});
  ::testing::internal::CaptureStderr();
  progress.Report(1, 0.5, 1, 1e-3);
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, ::testing::MatchesRegex("(.|\n)*loss 0.5000 of the variance  .*  [0-9]+ tokens/s(.|\n)*")) << line;
}

TEST(StopSignal, TheFirstIsNotedAndTheSecondEndsTheProcessOfWhicheverKind) {
  for (const int first : {SIGINT, SIGTERM}) {
    for (const int second : {SIGINT, SIGTERM}) {
      const auto receive_two = [=] {
        const StopSignal signal;
        if (signal.received()) std::exit(1);
        std::raise(first);
        if (!signal.received()) std::exit(2);
        std::raise(second);
      };
      EXPECT_EXIT(receive_two(), ::testing::KilledBySignal(second), "") << first << ", " << second;
    }
  }
}

TEST(StopSignal, WhatWasIgnoredStaysIgnored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const StopSignal signal;
    std::raise(SIGINT);
    EXPECT_FALSE(signal.received());
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

int signals_of_the_process = 0;

TEST(StopSignal, AfterwardsTheProcesssOwnHandlerIsBack) {
  std::signal(SIGTERM, [](int) { ++signals_of_the_process; });
  {
    const StopSignal signal;
    std::raise(SIGTERM);
    EXPECT_TRUE(signal.received());
  }
  std::raise(SIGTERM);
  EXPECT_EQ(signals_of_the_process, 1);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace longshort::models::terminal_test
