// A worker of an engine, of a language model or of a classifier: a thread that drives a replica of the model.
//
//   Build -> round, round, ... -> ends when the queue is over
//     ^        |    \__ nothing to run: it sleeps, and after kIdleTimeBeforeRest the model rests
//     \________/ its model is given up: it gets another one when core/schedule/failure_policy.h says
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/thread.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/work_queue.h"

namespace longshort::core {

// A worker that has had nothing to do for so long has its model rest: long enough that a client who waits for one
// answer before it asks again finds the model awake.
inline constexpr absl::Duration kIdleTimeBeforeRest = absl::Milliseconds(100);

// What a kind of engine does with one worker's model. Thread: the worker's; Build's first call, any.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  // Makes the model. Errors: why there is none to be had; it may be tried again.
  virtual absl::Status Build() = 0;
  // Runs a step or a batch; ends all that is left if it is to `end_now`. Returns when the next round is due: at once
  // (InfinitePast), or not before the queue changes (InfiniteFuture). REQUIRES: there is a model.
  virtual absl::Time RunRound(bool end_now) = 0;
  // Whether the model failed so that it is given up.
  virtual bool broken() const = 0;
  // Frees a model that is given up. Its work has gone back to the queue.
  virtual void FreeModel() = 0;
  // The model will have nothing to do for a while.
  virtual void Rest() = 0;

  // There will be no model for a while.
  virtual void OnNoModel() {}
  // There is another model, or none is to be had and the worker will try again.
  virtual void OnRebuilt(const absl::Status& status) = 0;
  // Ends the work that nobody waits for, or all if it is to `end_now`: a worker without a model does only this.
  virtual void EndAbandoned(bool end_now) = 0;
  // Does what is due besides running the model. Returns when to call this again; it is also called before each sleep.
  virtual absl::Time Tidy() { return absl::InfiniteFuture(); }
};

class ModelWorker final {
 public:
  // Gets the worker's runner between two rounds, or null if the worker has ended.
  using Task = std::function<void(ModelRunner*)>;

  // `number`: by which the queue knows it. `queue` and `clock` must outlive the worker.
  ModelWorker(int number, std::unique_ptr<ModelRunner> runner, WorkQueue& queue, const Clock& clock)
      : number_(number), runner_(std::move(runner)), queue_(queue), clock_(clock) {}
  // REQUIRES of the destructor: not started, or the queue is closed and will be over.

  // Gives it a model. Errors: as ModelRunner::Build.
  absl::Status Build();
  // Begins to work in a thread of its own. REQUIRES: Build was OK. Errors: RESOURCE_EXHAUSTED if no thread can start.
  absl::Status Start();
  // One round, with or without a model, as the thread does. For tests that have no thread. Returns when the next is
  // due.
  absl::Time RunRound();

  bool has_model() const { return has_model_; }
  // Has the task run soon: by the worker's thread, or by this one once that has ended. Thread-safe.
  void Post(Task task);
  // Whether its thread has ended, by `deadline` at the latest; does not wait if that has passed. Thread-safe.
  bool WaitUntilEnded(absl::Time deadline);

 private:
  void Work();
  void RunTasks();
  // There is nothing to run before `next_round`, unless the queue changes.
  void Sleep(absl::Time next_round);
  void GiveUpModel();
  // Tries to build another model, and ends what nobody waits for. Returns whether there is a model.
  bool Rebuild(bool end_now);

  const int number_;
  const std::unique_ptr<ModelRunner> runner_;
  WorkQueue& queue_;
  const Clock& clock_;

  bool has_model_ = false;
  ModelReplacement replacement_;
  absl::Time next_tidy_ = absl::InfinitePast();
  int64_t changes_seen_ = -1;  // of the queue, before the last round
  absl::Duration idle_;        // since then
  bool resting_ = false;

  std::mutex mutex_;
  std::condition_variable has_ended_;
  std::deque<Task> tasks_;   // guarded by mutex_
  bool takes_tasks_ = true;  // guarded by mutex_; the worker's thread, which alone changes it, reads it without
  bool ended_ = false;       // guarded by mutex_
  Thread thread_;            // last: it uses the other members
};

// The workers of one engine.
class ModelWorkers final {
 public:
  // `queue` and `clock` must outlive this.
  ModelWorkers(WorkQueue& queue, const Clock& clock) : queue_(queue), clock_(clock) {}
  ~ModelWorkers() { Drain(absl::InfinitePast()); }

  // Starts a worker, whose number is as many as there were before. Errors: those of ModelWorker's Build and Start.
  absl::Status Add(std::unique_ptr<ModelRunner> runner);
  size_t size() const { return workers_.size(); }
  void Post(int worker, ModelWorker::Task task) { workers_[worker]->Post(std::move(task)); }

  // Closes the queue, waits until all work has ended, and at `deadline` ends what is left. When it returns, no worker
  // works. Thread-safe; the earliest deadline counts.
  void Drain(absl::Time deadline);

 private:
  WorkQueue& queue_;
  const Clock& clock_;
  std::vector<std::unique_ptr<ModelWorker>> workers_;
};

}  // namespace longshort::core
