// Where requests wait for a worker: first come, first served, and only so many.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/job.h"

namespace longshort {

// Thread-safe: any thread pushes, one worker takes. Never calls a listener.
class RequestQueue {
 public:
  explicit RequestQueue(int64_t capacity) : capacity_(capacity) {}

  // Errors: RESOURCE_EXHAUSTED if the queue is full, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Push(std::unique_ptr<Job> job);

  // The job that waited longest; null if none waits.
  std::unique_ptr<Job> TakeFirst();
  // Those that nobody waits for any more: cancelled, or past their deadline at `now`.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  int64_t size() const;

  // From now on takes no more jobs.
  void Close();
  // Waits until there is a job (true), or the queue is closed and empty (false).
  bool WaitForJob();

 private:
  const int64_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> jobs_;  // guarded by mutex_
  bool closed_ = false;                    // guarded by mutex_
};

}  // namespace longshort
