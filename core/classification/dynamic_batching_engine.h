// The engine of a classifier: items are prepared by a pool of threads, wait, and run in batches on the workers.
//
//   Classify -> ItemQueue -> (workers: BatchRunner) -> listener
//                 ^   |
//                 (pool: Prepare)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "core/classification/batch_runner.h"
#include "core/classification/classification_job.h"
#include "core/classification/item_queue.h"
#include "core/classification/preparation_pool.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/failure_policy.h"
#include "models/classifier.h"

namespace longshort {

// A worker is a thread with a replica of the model. It sleeps while no item is there, and takes what is there as soon
// as it is free, or, with BatchFormer::Options::max_queue_delay, as soon as it is due. Items are prepared only two
// batches ahead for each: prepared images take far more memory than encoded ones. What nobody waits for any more, and
// what cannot be done in time, is ended before each batch; the former before each preparation, too.
//
// When a batch fails, its items are tried again, each alone, by whichever worker is free; one that fails three times is
// ended with INTERNAL (core/schedule/failure_policy.h).
//
// The destructor ends what is left with UNAVAILABLE, within one batch and one preparation.
class DynamicBatchingEngine final : public ClassifierEngine {
 public:
  struct Options {
    ItemQueue::Options items = {};
    // At least one.
    std::vector<WorkerDevice> workers = CpuWorkers(1);
  };

  // `observer` may be null. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if no thread is to be had, those of
  // Classifier::Replicate.
  static absl::StatusOr<std::unique_ptr<DynamicBatchingEngine>> Create(
      std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
      std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);
  ~DynamicBatchingEngine() override;

  absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) override;
  ClassifierEngineState state() const override;
  void Drain(absl::Time deadline) override;

 private:
  struct Worker {
    int number = 0;
    WorkerDevice device = {};
    // Null while there is no replica to be had.
    std::unique_ptr<Classifier> classifier;
    std::unique_ptr<BatchRunner> runner;
    ModelReplacement replacement;
    bool resting = false;
    std::thread thread;
  };

  DynamicBatchingEngine(std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
                        std::unique_ptr<ClassifierEngineObserver> observer, const Clock& clock, const Options& options);

  // With the mutex held: has the pool prepare as many items as may be prepared ahead.
  void SchedulePreparations();
  // With the mutex held:
  bool NothingLeft() const { return items_.state().waiting_items == 0 && tasks_ == 0 && running_ == 0; }

  // A task of the pool: prepares the next item, if there is one. Returns how long that took.
  absl::Duration PrepareNext();
  // Makes the job's item. Errors: why there is none, to end the job with.
  absl::Status Prepare(ClassificationJob& job);

  // A worker's thread: runs until the engine is closed and all has ended.
  void Work(Worker& worker);
  // Gives the worker a replica.
  absl::Status Build(Worker& worker);
  // The same for one that has lost its own, unless it is too early to try again.
  void Rebuild(Worker& worker);
  // With the mutex held, which it gives up while it waits: returns when there is something for a round, or nothing
  // left.
  void WaitForRound(Worker& worker, std::unique_lock<std::mutex>& lock);
  // With the mutex held, which it gives up: there is nothing at all; returns when that may have changed. After a while
  // the worker's model rests.
  void WaitForWork(Worker& worker, std::unique_lock<std::mutex>& lock);
  // With the mutex held, which it gives up while the model runs: one round of a worker.
  void RunRound(Worker& worker, std::unique_lock<std::mutex>& lock);
  void RunBatch(Worker& worker, ClassificationJobs batch);
  // With the mutex held: notes how the worker's model did. Returns whether it is to be given up.
  bool Judge(Worker& worker, const absl::Status& run);
  // The batch failed: its items wait again, or are ended.
  void Recover(ClassificationJobs batch, const absl::Status& failure);

  const std::unique_ptr<Classifier> classifier_;  // whose replicas the workers have; never runs
  const std::shared_ptr<PreparationPool> pool_;
  const std::unique_ptr<ClassifierEngineObserver> observer_;
  const Clock& clock_;
  const int64_t most_prepared_ahead_;
  const PreparationPool::Owner owner_;  // of its tasks

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  ItemQueue items_;
  WorkerTrials trials_;
  int64_t tasks_ = 0;          // the pool's, that have not ended
  int64_t tasks_waiting_ = 0;  // those of them that have not begun
  bool closed_ = false;        // takes no more items
  bool end_now_ = false;       // no more batches: end what is left
  int working_ = 0;            // workers that have not ended
  int running_ = 0;            // those that have a batch, whose items may wait again

  std::vector<Worker> workers_;
};

}  // namespace longshort
