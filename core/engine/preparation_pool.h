// The threads that make items: decoding an image takes milliseconds that belong neither to gRPC's threads nor to the
// worker that runs the model.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace longshort {

// Thread-safe; engines share one. Each keeps the number of its tasks small, so the pool does.
class PreparationPool {
 public:
  // Errors: RESOURCE_EXHAUSTED if the threads cannot be had.
  static absl::StatusOr<std::shared_ptr<PreparationPool>> Create(int64_t threads);
  // Runs what was submitted, then ends the threads. Not to be called from a task.
  ~PreparationPool();
  PreparationPool(const PreparationPool&) = delete;
  PreparationPool& operator=(const PreparationPool&) = delete;

  // Runs `task` on one of the threads, first come, first served. It must not throw.
  void Submit(std::function<void()> task);

 private:
  PreparationPool() = default;

  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool closed_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace longshort
