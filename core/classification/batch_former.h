// The items of a classifier's engine, and the next batch that they form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "core/requests/classifier_engine.h"
#include "core/schedule/estimators.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/work_attributes.h"
#include "models/classifier.h"
#include "models/worker_device.h"

namespace longshort::core {

// An item in the engine of a classifier, from submission through preparation and its batch to its listener. One thread
// at a time owns it: the caller's, then a preparation thread, then the engine's.
class ClassificationJob {
 public:
  ClassificationJob(ClassificationRequest request, std::shared_ptr<ClassificationListener> listener,
                    absl::Time submitted);

  const RequestContext& context() const { return context_; }
  absl::Time submitted() const { return submitted_; }
  // ClassificationRequest::bytes: the memory that it holds while it waits.
  int64_t bytes() const { return bytes_; }
  models::ClassifierOutput output() const { return output_; }
  // As ClassificationRequest says.
  absl::Duration preparation_work() const { return preparation_work_; }
  absl::Duration work_until_prepared() const { return work_until_prepared_; }

  // Whether there is an item to run.
  bool prepared() const { return prepared_at_ != absl::InfiniteFuture(); }
  // Makes the item. REQUIRES: not prepared; called once. Errors: PrepareItem's.
  absl::Status Prepare();
  // The item is ready.
  void SetPrepared(absl::Time now) { prepared_at_ = now; }

  // REQUIRES: prepared().
  const models::ClassifierItem& item() const { return item_; }
  absl::Time prepared_at() const { return prepared_at_; }
  absl::Duration WaitedAsItem(absl::Time now) const { return now - prepared_at_; }

  // OK while the client waits for the result. Errors: CANCELLED, DEADLINE_EXCEEDED.
  absl::Status CheckNotAbandoned(absl::Time now) const;

  // Notifies the listener. REQUIRES: Fail or Finish is called, once, last.
  void Fail(const absl::Status& status);
  // The batch ran from `begin` to `end` and returned this row for the item.
  void Finish(std::vector<float> row, absl::Time begin, absl::Time end);

  // The part of the queue's budget that it holds while it waits.
  Budget::Share held;
  // Its entry in the order of work.
  WorkAttributes attributes;
  // The failed batches with this item. After the first one, it runs alone.
  WorkFailures failures{WorkFailures::kOfItem};
  // The number of the first batch of another kind that skipped it; 0 if none did.
  int64_t first_skipped_by = 0;

 private:
  const RequestContext context_;
  const models::ClassifierOutput output_;
  const int64_t bytes_;
  const absl::Duration preparation_work_;
  const absl::Duration work_until_prepared_;
  const absl::Time submitted_;
  std::shared_ptr<ClassificationListener> listener_;
  ItemPreparation preparation_;  // null once called, and if the request came with an item
  models::ClassifierItem item_;
  absl::Time prepared_at_ = absl::InfiniteFuture();
};

using ClassificationJobs = std::vector<std::unique_ptr<ClassificationJob>>;

// Ends an item with an error. Thread-safe.
void FailItem(ClassificationJob& job, const absl::Status& status, ClassifierEngineObserver& observer);

// A worker that takes a batch.
struct BatchTaker {
  int worker = 0;
  // It takes one item at a time, and none on its last try.
  bool on_probation = false;
  // When its earlier batches are predicted to end.
  absl::Time busy_until = absl::InfinitePast();
};

// The first item in the order of work (core/schedule/work_order.h) leads the batch; items that can run with it join in
// order. Items run with items of the same output; images with images of the same size, token sequences with any. A
// batch grows until it is full, or until one more item would make its most urgent item late, by recent run times. An
// item that failed in a batch runs alone: the batch ends when its turn comes. A batch also ends at an item that too
// many batches of another kind have skipped. Otherwise that item could starve.
//
// An item that cannot meet its deadline, even alone and at the fastest speed, is left out, unless there is no other
// work. So estimates from slow times are tested again.
//
// Time is measured as if all workers shared each item (WorkerGroups): the queue is empty after that time.
//
// Thread: not thread-safe; ItemQueue's mutex guards it. Never calls a listener.
class BatchFormer {
 public:
  struct Options {
    // Items of one batch. Larger batches use wide machines better, but each item waits for the whole batch.
    int64_t max_batch_size = 32;
    // Tokens of one batch, over all its documents. Limits a batch's memory. A longer item runs alone.
    int64_t max_batch_tokens = 65536;
    // How long an item may wait for others while its batch is not full, at most half of the time until its deadline. By
    // default a batch takes the items that are there when the worker is free. For machines on which a larger batch
    // costs almost nothing.
    absl::Duration max_queue_delay = absl::ZeroDuration();
    WorkOrder::Options order = {};
  };

  struct TooLate {
    std::unique_ptr<ClassificationJob> job;
    absl::Status why;  // the status to end it with
  };
  struct Batch {
    ClassificationJobs jobs;
    std::vector<TooLate> too_late;
    // When it is predicted to end; when it can begin, if no similar batch has run.
    absl::Time predicted_end = absl::InfinitePast();
  };

  // `workers`: the workers that take batches, numbered from 0; at least one.
  explicit BatchFormer(const Options& options, const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1))
      : options_(options), queue_(options.order), estimates_(workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // REQUIRES: job->prepared(). Orders by the job's attributes, and sets its predicted cost.
  void Add(std::unique_ptr<ClassificationJob> job);

  // When to take the next batch; InfiniteFuture if no item waits, or all items are of clients that have reached their
  // limit of running items. `on_probation`: as in BatchTaker.
  absl::Time DueAt(bool on_probation = false);
  // Whether as many items or tokens wait as a batch may have. `on_probation`: as in BatchTaker.
  bool HasFullBatch(bool on_probation = false) const;
  // The next batch, for Complete; without jobs if no item waits.
  Batch TakeBatch(absl::Time now, const BatchTaker& taker = {});
  // A batch of `worker` ran for `run`, or `failed` after it. A failed batch does not count for predictions, but its
  // time is charged. Returns its part of all workers' time.
  absl::Duration Complete(int worker, const ClassificationJobs& batch, absl::Duration run, bool failed, absl::Time now);

  // Whether an item is worth starting: not if even alone, on the fastest worker, it takes longer than the time left. OK
  // while any worker has run no similar item.
  absl::Status CheckDeadlineCanBeMet(const ClassificationJob& job, absl::Time now) const;
  // The time of all workers that an item is predicted to take of its batch; zero until a similar item has run.
  absl::Duration CostOf(const ClassificationJob& job) const;

  // Removes the items whose clients no longer wait at `now`.
  ClassificationJobs TakeAbandoned(absl::Time now);
  ClassificationJobs TakeAll() { return queue_.RemoveAll(); }

  int64_t size() const { return queue_.size(); }
  // Batches that were taken and not completed yet.
  int64_t running() const { return running_; }
  const WorkOrder::Load& load() const { return queue_.load(); }
  WorkOrder::Load LoadOf(const std::string& client) const { return queue_.LoadOf(client); }
  WorkOrder::Load Ahead(const WorkAttributes& next) const { return queue_.Ahead(next); }

 private:
  // Records the time of a run of this shape.
  void Learn(int worker, const RunShape& shape, absl::Duration run, absl::Time now);
  // Takes the item that leads the batch. Null if there is none.
  std::unique_ptr<ClassificationJob> TakeLeader(absl::Time now, bool on_probation, std::vector<TooLate>& too_late);
  // Takes the next item that may lead. Null if there is none.
  std::unique_ptr<ClassificationJob> TakeFirst(bool on_probation);

  const Options options_;
  FairQueue<std::unique_ptr<ClassificationJob>> queue_;
  RunTimeEstimatorPerDevice estimates_;
  int64_t running_ = 0;
  int64_t batches_ = 0;  // taken so far
};

// Tokens of all documents of an item; 0 for an image.
int64_t TokensOf(const models::ClassifierItem& item);

}  // namespace longshort::core
