// The engine of a classifier: items are prepared by a pool of threads, wait, and run in batches on one worker thread.
//
//   Classify -> ItemQueue -> (worker: BatchRunner) -> listener
//                 ^   |
//                 (pool: Prepare)
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "core/engine/batch_runner.h"
#include "core/engine/classification_engine.h"
#include "core/engine/classification_job.h"
#include "core/engine/clock.h"
#include "core/engine/item_queue.h"
#include "core/engine/preparation_pool.h"
#include "models/classifier.h"

namespace longshort {

// The worker sleeps while no item is there, and takes what is there as soon as it is free, or, with
// BatchFormer::Options::max_queue_delay, as soon as it is due. Items are prepared only two batches ahead: prepared
// images take far more memory than encoded ones. What nobody waits for any more, and what cannot be done in time, is
// ended before each batch; the former before each preparation, too.
//
// The destructor ends what is left with UNAVAILABLE, within one batch and one preparation.
class ClassifierEngine final : public ClassificationEngine {
 public:
  using Options = ItemQueue::Options;

  // `observer` may be null. `clock` must outlive the engine.
  // Errors: INVALID_ARGUMENT for options out of range, RESOURCE_EXHAUSTED if no thread is to be had.
  static absl::StatusOr<std::unique_ptr<ClassifierEngine>> Create(std::unique_ptr<Classifier> classifier,
                                                                  std::shared_ptr<PreparationPool> pool,
                                                                  std::unique_ptr<ClassificationObserver> observer,
                                                                  const Clock& clock, const Options& options);
  ~ClassifierEngine() override;

  absl::Status Classify(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener) override;
  ClassificationEngineState state() const override;
  void Drain(absl::Time deadline) override;

 private:
  ClassifierEngine(std::unique_ptr<Classifier> classifier, std::shared_ptr<PreparationPool> pool,
                   std::unique_ptr<ClassificationObserver> observer, const Clock& clock, const Options& options);

  // With the mutex held: has the pool prepare as many items as may be prepared ahead.
  void SchedulePreparations();
  bool NothingLeft() const { return items_.state().waiting_items == 0 && tasks_waiting_ + items_.preparing() == 0; }

  // A task of the pool: prepares the next item, if there is one. Returns how long that took.
  absl::Duration PrepareNext();
  // Makes the job's item, or ends the job and returns null.
  std::unique_ptr<ClassificationJob> Prepared(std::unique_ptr<ClassificationJob> job);

  // The worker: runs until the engine is closed and all has ended.
  void Work();
  // With the mutex held, which it gives up while it waits: returns when there is something for a round, or nothing
  // left.
  void WaitForRound(std::unique_lock<std::mutex>& lock);
  // With the mutex held, which it gives up while the model runs: one round of the worker.
  void RunRound(std::unique_lock<std::mutex>& lock);
  void RunBatch(const ClassificationJobs& batch);

  const std::unique_ptr<Classifier> classifier_;
  const std::shared_ptr<PreparationPool> pool_;
  const std::unique_ptr<ClassificationObserver> observer_;
  const Clock& clock_;
  const int64_t most_prepared_ahead_;
  const PreparationPool::Owner owner_;  // of its tasks
  BatchRunner runner_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  ItemQueue items_;
  int64_t tasks_waiting_ = 0;  // tasks that the pool has not begun
  bool closed_ = false;        // takes no more items
  bool end_now_ = false;       // no more batches: end what is left
  bool worker_ended_ = false;

  std::thread worker_;
};

}  // namespace longshort
