// The items of a classifier that wait: how many may, which is prepared next, which run next.
//
//   Admit -> unprepared -> TakeUnprepared, AddPrepared -> ready -> TakeBatch, Settle
//        \_____________ what is an item already _________^
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
#include "core/schedule/recent_values.h"
#include "core/schedule/waiting_limits.h"
#include "core/schedule/waiting_line.h"
#include "models/worker_device.h"

namespace longshort {

// Items are prepared in the order of work too. There, clients are charged with the time that preparing took, of what
// failed as well.
//
// Thread: none of its own; the engine's mutex guards it. Never calls a listener.
class ItemQueue {
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

  // `workers`: as BatchFormer's.
  explicit ItemQueue(const Options& options, const std::vector<WorkerDevice>& workers = CpuWorkers(1))
      : options_(options),
        workers_(static_cast<int64_t>(workers.size())),
        unprepared_({.rounds = options.batches.order.rounds}),
        batches_(options.batches, workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the item cannot be done in time,
  // unless a worker is idle; then the job is dropped.
  absl::Status Admit(std::unique_ptr<ClassificationJob> job, absl::Time now);

  // The next to be prepared; it counts as waiting on. Null if there is none.
  std::unique_ptr<ClassificationJob> TakeUnprepared();
  // What was taken to be prepared is an item now, after this much work.
  void AddPrepared(std::unique_ptr<ClassificationJob> job, absl::Duration preparation);
  // What was taken to be prepared is none, and is to be ended.
  void DropUnprepared(const ClassificationJob& job, absl::Duration preparation);

  // As BatchFormer's.
  absl::Time BatchDueAt(bool on_trial = false) { return batches_.DueAt(on_trial); }
  BatchFormer::Batch TakeBatch(absl::Time now, const BatchTaker& taker = {});
  void Settle(int worker, const ClassificationJobs& batch, absl::Duration run, bool failed, absl::Time now);

  // An item of a batch that failed, which was settled, waits again.
  void AddAgain(std::unique_ptr<ClassificationJob> job);

  // Those that nobody waits for any more at `now`, prepared or not, and all; what is being prepared is not among them.
  ClassificationJobs TakeAbandoned(absl::Time now);
  ClassificationJobs TakeAll();

  int64_t unprepared() const { return unprepared_.size(); }
  int64_t preparing() const { return unprepared_.load().running; }
  int64_t prepared() const { return batches_.size(); }
  const ClassifierEngineState& state() const { return state_; }

 private:
  absl::Status CheckBytes(const ClassificationJob& job, const WorkOrder::Load& all) const;
  // It waits no more.
  void Uncount(const ClassificationJob& job);

  const Options options_;
  const int64_t workers_;
  WaitingLine<std::unique_ptr<ClassificationJob>> unprepared_;
  BatchFormer batches_;
  RecentValues seconds_per_item_;  // of all workers' time
  ClassifierEngineState state_;
};

}  // namespace longshort
