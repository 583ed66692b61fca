// Runs the steps of a model, each on the number of threads that is fastest.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "models/device/library.h"
#include "models/device/thread_choice.h"

namespace longshort::models {

// Thread: the one that runs the steps.
class TimedSteps final {
 public:
  // `threads`: maximum for a step; 0: LibTorch's default.
  explicit TimedSteps(int threads) : choice_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `step`, which has `work` units (ThreadChoice::Next). Returns its result, and throws what it throws.
  template <typename Step>
  auto Run(int64_t work, const Step& step) {
    Begin(work);
    auto result = step();
    End();
    return result;
  }

  // The same in two calls. Do not call End for a step that failed.
  void Begin(int64_t work) {
    work_ = work;
    UseThreads(choice_.Next(work));
    begin_ = std::chrono::steady_clock::now();
    processors_begin_ = std::clock();
  }
  void End() {
    choice_.Record(work_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(),
                   static_cast<double>(std::clock() - processors_begin_) / CLOCKS_PER_SEC);
  }

 private:
  ThreadChoice choice_;
  // The current step:
  int64_t work_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::clock_t processors_begin_ = 0;
};

}  // namespace longshort::models
