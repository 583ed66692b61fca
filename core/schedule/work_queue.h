// The common part of both kinds of engine's queues: a lock, workers that sleep until something changes, the workers'
// probation, and shutdown.
//
//   open -> Close: refuses new work, runs the rest -> EndNow: workers end the rest without running it
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/mutex.h"
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
  // Whether it is closed and no work waits, runs or may be returned: no worker will get work from it.
  bool over() const;
  // Workers end all remaining work, within a round.
  void EndNow();
  bool ends_now() const { return end_now_.load(std::memory_order_relaxed); }

  // Increases whenever work arrives, leaves, or becomes available to another worker. For idle workers.
  int64_t changes() const;
  // Waits until changes() differs from `seen`, for at most `max`, or less if queued work should be checked earlier.
  // Returns how long it waited, or nullopt if there was a change.
  std::optional<absl::Duration> WaitForChange(int64_t seen, absl::Duration max);
  // Counts as a change.
  void Wake();

  // As WorkerProbation.
  void OnModelDiscarded(int worker);
  void OnModelPassed(int worker);
  bool IsOnProbation(int worker) const;

 protected:
  explicit WorkQueue(size_t workers) : worker_count_(static_cast<int>(workers)), probation_(worker_count_) {}
  ~WorkQueue() = default;

  // Whether no work waits, runs or may be returned.
  virtual bool IsEmpty() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The maximum time that a worker may sleep while nothing changes.
  virtual absl::Duration MaxSleep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return absl::InfiniteDuration(); }
  void CountChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++changes_; }
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    CountChange();
    WakeWorkers();
  }
  bool is_closed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_; }

  // May be called without the mutex.
  void WakeWorkers() { changed_.NotifyAll(); }

  const int worker_count_;
  mutable Mutex mutex_;
  WorkerProbation probation_ ABSL_GUARDED_BY(mutex_);

 private:
  ConditionVariable changed_;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> end_now_ = false;
};

}  // namespace longshort::core
