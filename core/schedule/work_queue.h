// What the queues of both kinds of engine have besides their work: a lock, workers that sleep until something changes,
// which of them are on probation, and an end.
//
//   open -> Close: refuses new work, runs what it has -> EndNow: workers end what is left instead of running it
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/time/time.h"
#include "core/schedule/failure_policy.h"

namespace longshort::core {

// Thread-safe.
class WorkQueue {
 public:
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Refuses new work from now on.
  void Close();
  bool closed() const;
  // Whether it is closed and nothing waits, runs or may come back: no worker will get anything from it.
  bool over() const;
  // Workers end what is left, within a round.
  void EndNow();
  bool ends_now() const { return end_now_.load(std::memory_order_relaxed); }

  // Rises whenever something comes, goes, or may be taken by another worker: for workers that found nothing to do.
  int64_t changes() const;
  // Waits until changes() is not `seen`, for `most` at most; for less if what waits should be looked at sooner. Returns
  // how long that was, or nothing if there was a change.
  std::optional<absl::Duration> WaitForChange(int64_t seen, absl::Duration most);
  // Counts as a change.
  void Wake();

  // As WorkerProbation.
  void OnModelGivenUp(int worker);
  void OnModelPassed(int worker);
  bool IsOnProbation(int worker) const;

 protected:
  explicit WorkQueue(size_t workers) : worker_count_(static_cast<int>(workers)), probation_(worker_count_) {}
  ~WorkQueue() = default;

  // All with mutex_ held.
  // Whether nothing waits, runs or may come back.
  virtual bool IsEmpty() const = 0;
  // How long a worker may sleep while nothing changes.
  virtual absl::Duration LongestSleep() const { return absl::InfiniteDuration(); }
  void CountChange() { ++changes_; }
  void Changed() {
    CountChange();
    WakeWorkers();
  }
  bool is_closed() const { return closed_; }

  // With the mutex held or not: workers that wake find it free then.
  void WakeWorkers() { changed_.notify_all(); }

  const int worker_count_;
  mutable std::mutex mutex_;
  WorkerProbation probation_;  // guarded by mutex_

 private:
  std::condition_variable changed_;
  int64_t changes_ = 0;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
  std::atomic<bool> end_now_ = false;
};

}  // namespace longshort::core
