// A worker of either kind of engine, and the queue that it takes work from.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/schedule/failure_policy.h"

namespace longshort::core {

// The common part of both kinds of engine's queues: a lock, workers that sleep until something changes, the workers'
// probation, and shutdown.
//
//   open -> Close: refuses new work, runs the rest -> EndNow: workers end the rest without running it
//
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

// A worker lets its model rest after this idle time. It is long enough that a client that sends its next request right
// after an answer finds the model awake.
inline constexpr absl::Duration kIdleTimeBeforeRest = absl::Milliseconds(100);

// What an engine does with one worker's model. Thread: the worker's, except the first call of Build.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  // Creates the model. Errors: why that failed; the caller may retry.
  virtual absl::Status Build() = 0;
  // Runs a step or a batch; ends all remaining work if `end_now`. Returns when the next round is due: InfinitePast for
  // at once, InfiniteFuture for not before the queue changes. REQUIRES: there is a model.
  virtual absl::Time RunRound(bool end_now) = 0;
  // Whether the model failed and must be discarded.
  virtual bool broken() const = 0;
  // Destroys a discarded model. Its work has returned to the queue.
  virtual void FreeModel() = 0;
  // The model will be idle for a while.
  virtual void Rest() = 0;

  // The worker will have no model for a while.
  virtual void OnNoModel() {}
  // Another model was built, or the build failed and will be retried.
  virtual void OnRebuilt(const absl::Status& status) = 0;
  // Ends the work of clients that no longer wait, or all work if `end_now`: a worker without a model does only this.
  virtual void EndAbandoned(bool end_now) = 0;
  // Periodic work besides running the model. Returns when to call it again; it is also called before each sleep.
  virtual absl::Time RunMaintenance() { return absl::InfiniteFuture(); }
};

// A thread that drives a replica of the model.
//
//   Build -> round, round, ... -> ends when the queue is over
//     ^        |    \__ no work: it sleeps, and after kIdleTimeBeforeRest the model rests
//     \________/ its model is discarded: it builds another one as core/schedule/failure_policy.h says
class ModelWorker final {
 public:
  // Gets the worker's runner between two rounds; null if the worker has ended.
  using Task = std::function<void(ModelRunner*)>;

  // `number`: the worker's number in the queue. `queue` and `clock` must outlive the worker.
  ModelWorker(int number, std::unique_ptr<ModelRunner> runner, WorkQueue& queue, const Clock& clock)
      : number_(number), runner_(std::move(runner)), queue_(queue), clock_(clock) {}
  // REQUIRES of the destructor: not started, or the queue is closed and its remaining work will end
  // (WorkQueue::over()).

  // Builds the model. Errors: as ModelRunner::Build.
  absl::Status Build();
  // Starts the worker's thread. REQUIRES: Build was OK. Errors: RESOURCE_EXHAUSTED if no thread can be created.
  absl::Status Start();
  // Runs one round, with or without a model, as the thread does. For tests without a thread. Returns when the next
  // round is due.
  absl::Time RunRound();

  // Runs the task soon: on the worker's thread, or on the calling one if the worker has ended. Thread-safe.
  void Post(Task task);
  // Returns whether the thread has ended; waits for that until `deadline`. Thread-safe.
  bool WaitUntilEnded(absl::Time deadline);

 private:
  void Work();
  void RunTasks();
  // No work can run before `next_round`, unless the queue changes.
  void Sleep(absl::Time next_round);
  void DiscardModel();
  // Tries to build another model, and ends abandoned work. Returns whether there is a model.
  bool Rebuild(bool end_now);

  const int number_;
  const std::unique_ptr<ModelRunner> runner_;
  WorkQueue& queue_;
  const Clock& clock_;

  bool has_model_ = false;
  ModelReplacement replacement_;
  absl::Time next_maintenance_ = absl::InfinitePast();
  int64_t changes_seen_ = -1;  // of the queue, before the last round
  absl::Duration idle_;        // since then
  bool resting_ = false;

  Mutex mutex_;
  ConditionVariable has_ended_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool takes_tasks_ ABSL_GUARDED_BY(mutex_) = true;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the other members
};

// The workers of one engine.
class ModelWorkers final {
 public:
  // `queue` and `clock` must outlive this.
  ModelWorkers(WorkQueue& queue, const Clock& clock) : queue_(queue), clock_(clock) {}
  ~ModelWorkers() { Drain(absl::InfinitePast()); }

  // Starts a worker; its number is size(). Errors: those of ModelWorker's Build and Start.
  absl::Status Add(std::unique_ptr<ModelRunner> runner);
  size_t size() const { return workers_.size(); }
  void Post(int worker, ModelWorker::Task task) { workers_[worker]->Post(std::move(task)); }

  // Closes the queue and waits until all work has ended; ends the rest at `deadline`. When it returns, no worker runs.
  // Thread-safe; the earliest deadline counts.
  void Drain(absl::Time deadline);

 private:
  WorkQueue& queue_;
  const Clock& clock_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
};

}  // namespace longshort::core
