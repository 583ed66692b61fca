#include "models/train/terminal.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace longshort::models::terminal_test {

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
