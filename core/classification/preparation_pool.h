// The threads that prepare items. Decoding an image takes milliseconds, which must block neither gRPC's threads nor the
// worker that runs the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/schedule/fair_queue.h"

namespace longshort::core {

// Thread-safe. Engines share one pool and divide its time evenly, so a model with large images does not delay another.
// The queue is unbounded: each owner keeps the number of its tasks small.
class PreparationPool {
 public:
  // Work to run once; returns how long it took. Must not throw.
  using Task = std::function<absl::Duration()>;
  // Identifies the engine that submitted a task.
  using Owner = std::string;

  // Errors: RESOURCE_EXHAUSTED if the threads cannot be created.
  static absl::StatusOr<std::shared_ptr<PreparationPool>> Create(int64_t threads);
  // Runs all submitted tasks, then ends the threads. Must not be called from a task.
  ~PreparationPool();
  PreparationPool(const PreparationPool&) = delete;
  PreparationPool& operator=(const PreparationPool&) = delete;

  // Returns a unique owner.
  Owner NewOwner();
  // Runs `task` on one of the threads. The owner that has used the least of the threads' time goes first; one owner's
  // tasks run in the order of submission.
  void Submit(const Owner& owner, Task task);

 private:
  PreparationPool() = default;

  void Work();

  Mutex mutex_;
  ConditionVariable changed_;
  FairQueue<Task> tasks_ ABSL_GUARDED_BY(mutex_){WorkOrder::Options()};
  int64_t owners_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<Thread> threads_;  // last: they use the other members
};

}  // namespace longshort::core
