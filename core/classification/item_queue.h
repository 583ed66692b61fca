// The queue of a classifier's items: limits their number, and orders their preparation and their batches.
//
//   Admit -> unprepared -> BeginPreparation, AddPrepared -> ready -> TakeBatch -> Complete
//        \______________ items that need no preparation ____^  ^______________/ CompleteFailed
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "base/clock.h"
#include "core/classification/batch_former.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/estimators.h"
#include "core/schedule/fair_pool.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/model_worker.h"
#include "core/schedule/refusal.h"
#include "models/worker_device.h"

namespace longshort::core {

// The budgets for ItemQueue::Options. `parent`: the budget above; null for none.
std::shared_ptr<ClientBudgets> WaitingByteBudgets(int64_t bytes, std::shared_ptr<Budget> parent = nullptr);

// Items are prepared in the order of work, too. That order charges clients with the time of preparation, including
// failed ones: with the predicted work when a preparation begins, so that one client's large images do not take all
// threads before the first one is charged. At most two batches for each worker are prepared ahead.
//
// Thread-safe. Never calls a listener. Calls only OnState of the observer, with the lock held, so that the last
// reported state is the current one.
class ItemQueue final : public WorkQueue {
 public:
  struct Options {
    WaitingLimits limits = {.max_queued = 1024};
    // Bytes that the waiting items of all queues with these budgets may hold.
    std::shared_ptr<ClientBudgets> waiting_bytes = WaitingByteBudgets(int64_t{256} << 20);
    // An item without a deadline is due this long after it arrived. Among the items of one client, the earliest due
    // time goes first.
    absl::Duration patience = absl::Minutes(1);
    BatchFormer::Options batches = {};
  };

  // `workers`: as in BatchFormer. `observer` may be null; it must outlive the queue.
  explicit ItemQueue(const Options& options, const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1),
                     ClassifierEngineObserver* observer = nullptr)
      : WorkQueue(workers.size()),
        options_(options),
        observer_(observer),
        unprepared_({.rounds = options.batches.order.rounds}),
        batches_(options.batches, workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Errors: RESOURCE_EXHAUSTED with a Refusal if the queue is full, DEADLINE_EXCEEDED if no worker is idle and the item
  // cannot meet its deadline, UNAVAILABLE once closed. On an error the job is destroyed.
  absl::Status Admit(std::unique_ptr<ClassificationJob> job, absl::Time now);
  ClassifierEngineState state() const;

  // For the preparation pool. The queue is not over while a preparation is reserved or has begun.

  // Reserves as many preparations as may begin now. Returns their number; each must be begun and ended.
  int64_t ReservePreparations();
  // The next item to prepare; it still counts as waiting. Null if there is none.
  std::unique_ptr<ClassificationJob> BeginPreparation();
  // Preparation succeeded, after this much work.
  void AddPrepared(std::unique_ptr<ClassificationJob> job, absl::Duration preparation);
  // Preparation failed. Removes the job; the caller ends it.
  void RemoveUnprepared(ClassificationJob& job, absl::Duration preparation);
  // A preparation has ended, successfully or not. Reserves as many as may begin now.
  int64_t EndPreparation();

  // For workers:

  // When to take the worker's next batch: at once if the queue is closed; InfiniteFuture if no item waits for this
  // worker or all items are of clients that have reached their limit of running items.
  absl::Time BatchDueAt(int worker = 0);
  // Whether the worker may take a batch beside one that runs: a full one, so that the items that come meanwhile would
  // not make it larger.
  bool HasBatchAhead(int worker) const;
  // The next batch, for Complete; without jobs if no item waits. `busy_until`: as in BatchTaker.
  BatchFormer::Batch TakeBatch(absl::Time now, int worker = 0, absl::Time busy_until = absl::InfinitePast());
  // A batch of the worker has run for `run`, and its jobs have ended.
  void Complete(int worker, const ClassificationJobs& batch, absl::Duration run, absl::Time now);
  // A batch failed after `run`. Its jobs wait again, each to run alone. Returns the jobs that have failed too often.
  ClassificationJobs CompleteFailed(int worker, ClassificationJobs batch, absl::Duration run, absl::Time now);
  // A batch was dropped with its model. Its jobs wait again.
  void Return(int worker, ClassificationJobs batch, absl::Time now);

  // Removes the items whose clients no longer wait at `now`, prepared or not; TakeAll removes all. Items in preparation
  // are not included.
  ClassificationJobs TakeAbandoned(absl::Time now);
  ClassificationJobs TakeAll();

  int64_t unprepared() const;
  int64_t preparing() const;
  int64_t prepared() const;

 private:
  bool IsEmpty() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_.waiting_items == 0 && reserved_preparations_ + begun_preparations_ == 0 && batches_.running() == 0;
  }
  BatchTaker TakerOf(int worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {.worker = worker, .on_probation = probation_.IsOnProbation(worker)};
  }
  // The predicted time of a worker for that many items; 0 before the first batch.
  absl::Duration RunCost(int64_t items) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All waiting items, prepared or not, with their time of a worker; those in preparation count as waiting.
  WorkOrder::Load Waiting(const WorkOrder::Load& unprepared, const WorkOrder::Load& prepared) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Reserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job waits again.
  void AddAgain(std::unique_ptr<ClassificationJob> job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As Admit.
  absl::Status CheckAndAdd(std::unique_ptr<ClassificationJob> job, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckBytes(ClassificationJob& job, const WorkOrder::Load& all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds a job to the counts of waiting items, or removes it.
  void Count(ClassificationJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(ClassificationJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReportState() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  ClassifierEngineObserver* const observer_;
  FairQueue<std::unique_ptr<ClassificationJob>> unprepared_ ABSL_GUARDED_BY(mutex_);
  BatchFormer batches_ ABSL_GUARDED_BY(mutex_);
  RecentValues seconds_per_item_ ABSL_GUARDED_BY(mutex_);  // of all workers' time
  ClassifierEngineState state_ ABSL_GUARDED_BY(mutex_);
  int64_t reserved_preparations_ ABSL_GUARDED_BY(mutex_) = 0;  // not begun yet
  int64_t begun_preparations_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Prepares the items of a queue on a pool of threads.
//
// Prepares items only as far ahead as the queue allows: prepared images take far more memory than encoded ones.
//
// Thread-safe. It must exist until the queue is over, because tasks of the pool use it until then.
class ItemPreparer final {
 public:
  // The arguments must outlive this.
  ItemPreparer(std::shared_ptr<FairPool> pool, ItemQueue& items, ClassifierEngineObserver& observer, const Clock& clock)
      : pool_(std::move(pool)), owner_(pool_->NewOwner()), items_(items), observer_(observer), clock_(clock) {}

  // Submits a task for each item that may be prepared now.
  void PrepareAhead() { Submit(items_.ReservePreparations()); }

 private:
  void Submit(int64_t tasks);
  // The task: prepares the next item, if there is one. Returns how long that took.
  absl::Duration PrepareNext();
  // Makes the job's item. Errors: the status to end the job with.
  absl::Status Prepare(ClassificationJob& job);

  const std::shared_ptr<FairPool> pool_;
  const std::string owner_;
  ItemQueue& items_;
  ClassifierEngineObserver& observer_;
  const Clock& clock_;
};

}  // namespace longshort::core
