// The threads that make items: decoding an image takes milliseconds that belong neither to gRPC's threads nor to the
// worker that runs the model.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/thread.h"
#include "core/schedule/fair_queue.h"

namespace longshort::core {

// Thread-safe; engines share one, and the threads' time evenly: a model whose images are large does not hold up
// another. Each keeps the number of its tasks small, so the pool does.
class PreparationPool {
 public:
  // Work to be done once; returns how long it took. Must not throw.
  using Task = std::function<absl::Duration()>;
  // Whose tasks they are.
  using Owner = std::string;

  // Errors: RESOURCE_EXHAUSTED if the threads cannot be had.
  static absl::StatusOr<std::shared_ptr<PreparationPool>> Create(int64_t threads);
  // Runs what was submitted, then ends the threads. Not to be called from a task.
  ~PreparationPool();
  PreparationPool(const PreparationPool&) = delete;
  PreparationPool& operator=(const PreparationPool&) = delete;

  // One that nobody else is.
  Owner NewOwner();
  // Runs `task` on one of the threads: that of the owner who has had the least of their time; one owner's first come,
  // first served.
  void Submit(const Owner& owner, Task task);

 private:
  PreparationPool() = default;

  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  FairQueue<Task> tasks_{WorkOrder::Options()};
  int64_t owners_ = 0;
  bool closed_ = false;

  std::vector<Thread> threads_;  // last: they use the other members
};

}  // namespace longshort::core
