// Threads that do the work of many clients: what takes too long for the threads that read and write for all of them,
// such as decompressing a message or decoding an image.
//
// Thread-safe. The work runs in the order of all work (core/schedule/work_order.h), so clients share the threads' time
// evenly, however large and however many their tasks are.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/refusal.h"

namespace longshort::core {

class FairPool {
 public:
  // Work to run once; returns the time that its client is charged. Must not throw.
  using Task = absl::AnyInvocable<absl::Duration()>;
  // A task that is charged the processor time that it takes.
  static Task Timed(absl::AnyInvocable<void()> task);

  // `limits` are for TrySubmit. Not more than `max_running_per_client` of a client's tasks run at once, but at least
  // one: a task is never interrupted, so others need a thread on which no long task of this client runs.
  // Errors: RESOURCE_EXHAUSTED if the threads cannot be created.
  static absl::StatusOr<std::shared_ptr<FairPool>> Create(
      int64_t threads, const WaitingLimits& limits = {},
      int64_t max_running_per_client = std::numeric_limits<int64_t>::max());
  // Runs all submitted tasks, then ends the threads. Must not be called from a task.
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  // Returns a unique client, for an owner whose tasks are no client's.
  std::string NewOwner();

  // Runs `task` on one of the threads, for a caller that bounds the number of its tasks.
  void Submit(WorkAttributes attributes, Task task);
  // As Submit, within the limits. Errors: RESOURCE_EXHAUSTED, with a Refusal, if too much work waits before the task,
  // or too much of its client; the task is then destroyed.
  absl::Status TrySubmit(WorkAttributes attributes, Task task);

  // The tasks that wait or run.
  int64_t size() const;

 private:
  FairPool(const WaitingLimits& limits, const WorkOrder::Options& order) : limits_(limits), tasks_(order) {}

  void Work();
  // Returns whether a thread is to be woken for the task.
  bool Add(WorkAttributes attributes, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRunnable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WaitingLimits limits_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  FairQueue<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for tasks
  int64_t owners_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<Thread> threads_;  // last: they use the other members
};

}  // namespace longshort::core
