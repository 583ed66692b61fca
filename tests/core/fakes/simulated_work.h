// Work of other threads in the time of a fake clock: it begins when a thread comes to it, and ends when the test says.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "absl/time/time.h"

namespace longshort::core {

// Thread: the owner guards it with a mutex.
class SimulatedWork final {
 public:
  // Of the threads that work, which hold the mutex and give it up meanwhile: returns when the test has ended the work,
  // which it should do at `end`.
  void DoUntil(absl::Time end, std::unique_lock<std::mutex>& lock) {
    const std::pair<absl::Time, int64_t> work{end, ++begun_};
    running_.insert(work);
    ++threads_;
    ended_.wait(lock, [&] { return running_.count(work) == 0; });
    --threads_;
  }

  // Of the test: when the next work should end, in the infinite future if there is none; and ends it, if there is one.
  absl::Time next() const { return running_.empty() ? absl::InfiniteFuture() : running_.begin()->first; }
  void EndNext() {
    if (!running_.empty()) running_.erase(running_.begin());
    ended_.notify_all();
  }

  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  // Whether the threads know of all that has ended.
  bool settled() const { return threads_ == running(); }

 private:
  std::condition_variable ended_;
  std::set<std::pair<absl::Time, int64_t>> running_;
  int64_t begun_ = 0;
  int64_t threads_ = 0;
};

}  // namespace longshort::core
