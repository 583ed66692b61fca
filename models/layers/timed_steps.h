// The steps of a model, each on as many threads as it is worth.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "models/layers/library.h"
#include "models/layers/thread_choice.h"

namespace longshort::models {

// Thread: the one that runs the steps.
class TimedSteps final {
 public:
  // `threads`: of a step at the most; 0: as many as LibTorch would use.
  explicit TimedSteps(int threads) : choice_(threads == 0 ? OwnThreads() : threads) {}

  // Runs `step`, of `work` units (ThreadChoice::Next). Returns what it returns, throws what it throws.
  template <typename Step>
  auto Run(int64_t work, const Step& step) {
    Begin(work);
    auto result = step();
    End();
    return result;
  }

  // The same in two calls. A step that failed has no End.
  void Begin(int64_t work) {
    work_ = work;
    UseThreads(choice_.Next(work));
    begin_ = std::chrono::steady_clock::now();
    processors_begin_ = std::clock();
  }
  void End() {
    choice_.Took(work_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(),
                 static_cast<double>(std::clock() - processors_begin_) / CLOCKS_PER_SEC);
  }

 private:
  ThreadChoice choice_;
  // Of the step that runs:
  int64_t work_ = 0;
  std::chrono::steady_clock::time_point begin_;
  std::clock_t processors_begin_ = 0;
};

}  // namespace longshort::models
