// The engine of a classifier: items are prepared by a pool of threads, wait, and run in batches on one worker thread.
//
//   Classify -> unprepared_ -> (pool: Prepare) -> batches_ -> (worker: Classifier::Classify) -> listener
//          \____________ what is an item already ____^
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "core/engine/batch_former.h"
#include "core/engine/classification_engine.h"
#include "core/engine/classification_job.h"
#include "core/engine/clock.h"
#include "core/engine/preparation_pool.h"
#include "models/classifier.h"

namespace longshort {

// The worker sleeps while no item is there, and takes what is there as soon as it is free. Items are prepared only two
// batches ahead: prepared images take far more memory than encoded ones. What nobody waits for any more is ended before
// each preparation and each batch.
//
// The destructor ends what is left with UNAVAILABLE, within one batch and one preparation.
class ClassifierEngine final : public ClassificationEngine {
 public:
  struct Options {
    // Items that may wait; more are refused.
    int64_t max_waiting_items = 1024;
    // Bytes that they may hold. What comes while nothing waits is always taken.
    int64_t max_waiting_bytes = int64_t{256} << 20;
    BatchFormer::Options batches;
  };

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
  // With the mutex held: jobs leave the queue.
  void Leave(const ClassificationJobs& jobs);
  bool NothingLeft() const { return state_.waiting_items == 0 && tasks_waiting_ + preparing_ == 0; }

  // A task of the pool: prepares the first of unprepared_, if there is one.
  void PrepareFirst();
  // Makes the job's item, or ends the job and returns null.
  std::unique_ptr<ClassificationJob> Prepared(std::unique_ptr<ClassificationJob> job);

  // The worker: runs until the engine is closed and all has ended.
  void Work();
  // With the mutex held, which it gives up while the model runs: one round of the worker.
  void RunRound(std::unique_lock<std::mutex>& lock);
  void RunBatch(const ClassificationJobs& batch);
  void Fail(ClassificationJob& job, const absl::Status& status);

  const std::unique_ptr<Classifier> classifier_;
  const std::shared_ptr<PreparationPool> pool_;
  const std::unique_ptr<ClassificationObserver> observer_;
  const Clock& clock_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::deque<std::unique_ptr<ClassificationJob>> unprepared_;
  BatchFormer batches_;
  ClassificationEngineState state_;
  int64_t tasks_waiting_ = 0;  // tasks that the pool has not begun
  int64_t preparing_ = 0;      // tasks that it has begun
  bool closed_ = false;        // takes no more items
  bool end_now_ = false;       // no more batches: end what is left
  bool worker_ended_ = false;

  std::thread worker_;
};

}  // namespace longshort
