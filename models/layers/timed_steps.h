// The steps of a model, each on as many threads as it is worth.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "models/layers/library_threads.h"
#include "models/layers/thread_choice.h"

namespace longshort {

// Thread: the one that runs the steps.
class TimedSteps final {
 public:
  // `threads`: of a step at the most; 0: as many as LibTorch would use.
  explicit TimedSteps(int threads) : choice_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `step`, of `work` units (ThreadChoice::Next). Returns what it returns, throws what it throws.
  template <typename Step>
  auto Run(int64_t work, const Step& step) {
    UseThreads(choice_.Next(work));
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t processors_begin = std::clock();
    auto result = step();
    choice_.Took(work, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
                 static_cast<double>(std::clock() - processors_begin) / CLOCKS_PER_SEC);
    return result;
  }

 private:
  ThreadChoice choice_;
};

}  // namespace longshort
