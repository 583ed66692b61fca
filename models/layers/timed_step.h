// A step of a model, on as many threads as it is worth.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>

#include "models/layers/library_threads.h"
#include "models/layers/thread_choice.h"

namespace longshort {

// Runs `step`, of `work` units, and tells `choice` what it took. Returns what `step` returns, throws what it throws.
template <typename Step>
auto RunTimed(ThreadChoice& choice, int64_t work, const Step& step) {
  UseThreads(choice.Next(work));
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t processors_begin = std::clock();
  auto result = step();
  choice.Took(work, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
              static_cast<double>(std::clock() - processors_begin) / CLOCKS_PER_SEC);
  return result;
}

}  // namespace longshort
