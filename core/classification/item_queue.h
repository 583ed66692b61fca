// The items of a classifier that wait: how many may, which is prepared next, which run next.
//
//   Admit -> unprepared -> BeginPreparation, AddPrepared -> ready -> TakeBatch -> Settle
//        \______________ what is an item already ___________^  ^______________/ SettleFailed
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/classification/batch_former.h"
#include "core/classification/classification_job.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/recent_values.h"
#include "core/schedule/refusal.h"
#include "core/schedule/work_queue.h"
#include "models/worker_device.h"

namespace longshort::core {

// Items are prepared in the order of work too. There, clients are charged with the time that preparing took, of what
// failed as well. They are prepared only two batches ahead for each worker.
//
// Thread-safe. Never calls a listener. Calls the observer's OnState, and nothing else of it, with its lock held: so the
// last state that is reported is the state that is.
class ItemQueue final : public WorkQueue {
 public:
  struct Options {
    WaitingLimits limits = {.max_queued = 1024};
    // Bytes that the items that wait may hold. What comes while nothing waits is always taken.
    int64_t max_waiting_bytes = int64_t{256} << 20;
    // An item without a deadline is due so long after it came: among one client's, it goes before those with a later
    // one.
    absl::Duration patience = absl::Minutes(1);
    BatchFormer::Options batches = {};
  };

  // `workers`: as BatchFormer's. `observer` may be null; it must outlive the queue.
  explicit ItemQueue(const Options& options, const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1),
                     ClassifierEngineObserver* observer = nullptr)
      : WorkQueue(workers.size()),
        options_(options),
        observer_(observer),
        unprepared_({.rounds = options.batches.order.rounds}),
        batches_(options.batches, workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the item cannot be done in time,
  // unless a worker is idle, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Admit(std::unique_ptr<ClassificationJob> job, absl::Time now);
  ClassifierEngineState state() const;

  // For the pool that prepares items. The queue is not over while a preparation is reserved or has begun.

  // Reserves as many preparations as may begin now. Returns how many; each is to be begun and ended.
  int64_t ReservePreparations();
  // The next item to be prepared; it counts as waiting on. Null if there is none.
  std::unique_ptr<ClassificationJob> BeginPreparation();
  // What was taken to be prepared is an item now, after this much work.
  void AddPrepared(std::unique_ptr<ClassificationJob> job, absl::Duration preparation);
  // Preparation failed. Removes the job; the caller ends it.
  void DropUnprepared(const ClassificationJob& job, absl::Duration preparation);
  // A preparation that was begun has ended, whatever became of it. Reserves as many as may begin now.
  int64_t EndPreparation();

  // For workers:

  // When the worker's next batch should be taken, at once if the queue is closed; in the infinite future if nothing
  // waits for this worker, or only items of clients that have as much running as they may.
  absl::Time BatchDueAt(int worker = 0);
  // The next batch, to be settled; without jobs if nothing waits.
  BatchFormer::Batch TakeBatch(absl::Time now, int worker = 0);
  // A batch that the worker took has run so long, and its jobs have ended.
  void Settle(int worker, const ClassificationJobs& batch, absl::Duration run, absl::Time now);
  // A batch failed after so long. Its jobs wait again, each to run alone; but returns those that are unmeetable.
  ClassificationJobs SettleFailed(int worker, ClassificationJobs batch, absl::Duration run, absl::Time now);

  // Those that nobody waits for any more at `now`, prepared or not, and all; what is being prepared is not among them.
  ClassificationJobs TakeAbandoned(absl::Time now);
  ClassificationJobs TakeAll();

  int64_t unprepared() const;
  int64_t preparing() const;
  int64_t prepared() const;

 private:
  // All with mutex_ held.
  bool IsEmpty() const override {
    return state_.waiting_items == 0 && reserved_preparations_ + begun_preparations_ == 0 && batches_.running() == 0;
  }
  BatchTaker TakerOf(int worker) const { return {.worker = worker, .on_probation = probation_.IsOnProbation(worker)}; }
  int64_t Reserve();
  // As Admit.
  absl::Status CheckAndAdd(std::unique_ptr<ClassificationJob> job, absl::Time now);
  absl::Status CheckBytes(const ClassificationJob& job, const WorkOrder::Load& all) const;
  // It waits, or waits no more.
  void Count(const ClassificationJob& job);
  void Uncount(const ClassificationJob& job);
  void ReportState();

  const Options options_;
  ClassifierEngineObserver* const observer_;
  // Guarded by mutex_:
  FairQueue<std::unique_ptr<ClassificationJob>> unprepared_;
  BatchFormer batches_;
  RecentValues seconds_per_item_;  // of all workers' time
  ClassifierEngineState state_;
  int64_t reserved_preparations_ = 0;  // not begun yet
  int64_t begun_preparations_ = 0;
};

}  // namespace longshort::core
