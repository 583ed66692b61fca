// Which items of a classifier run together next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/classification/classification_job.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/run_time_estimator.h"
#include "models/worker_device.h"

namespace longshort::core {

// A worker that takes a batch.
struct BatchTaker {
  int worker = 0;
  // It takes one item at a time, and none whose next failure would be its last.
  bool on_probation = false;
};

// The first item in the order of work (core/schedule/work_order.h) decides what a batch is of; those that can run with
// it join in their order. Images run with images of the same size, token sequences with any. A batch grows until it is
// full, or until one more would make its most urgent item late, by what runs took of late. An item that a batch failed
// with runs alone: the batch ends where its turn comes. So it does where one's turn comes that many batches have left
// behind, being of another kind: else it would wait for as long as its client sends others.
//
// An item that cannot be done in time any more, even alone and at the fastest, is left out, unless there is nothing
// else to do: so what was learned in bad times is put to the test.
//
// Time is counted as if all workers shared each item (WorkerGroups): what waits will have been taken after so long.
//
// Thread: none of its own; ItemQueue's mutex guards it. Never calls a listener.
class BatchFormer {
 public:
  struct Options {
    // Items of one batch. Larger batches use wide machines better and make everybody in them wait for the whole.
    int64_t max_batch_size = 32;
    // Tokens of one batch, over all its documents: bounds a batch's memory. A longer item runs alone.
    int64_t max_batch_tokens = 65536;
    // How long an item may wait for others while its batch is not full, half of the time until its deadline at the
    // most. By default nothing is waited for: a batch is what is there when the worker is free. For machines on which a
    // larger batch costs next to nothing.
    absl::Duration max_queue_delay = absl::ZeroDuration();
    WorkOrder::Options order = {};
  };

  struct Unmeetable {
    std::unique_ptr<ClassificationJob> job;
    absl::Status why;  // to be ended with
  };
  struct Batch {
    ClassificationJobs jobs;
    std::vector<Unmeetable> unmeetable;
  };

  // `workers`: those that take batches, numbered from 0; at least one.
  explicit BatchFormer(const Options& options, const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1))
      : options_(options), line_(options.order), estimates_(workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // REQUIRES: job->prepared(). The job's ticket says where it waits, and gets its predicted cost here.
  void Add(std::unique_ptr<ClassificationJob> job);

  // When the next batch should be taken; in the infinite future if nothing waits, or only items of clients that have as
  // much running as they may. `on_probation`: as BatchTaker's.
  absl::Time DueAt(bool on_probation = false);
  // The next batch, to be settled; without jobs if nothing waits.
  Batch TakeBatch(absl::Time now, const BatchTaker& taker = {});
  // A batch that `worker` has taken ran so long, or `failed` after so long: that says nothing of others, but it took a
  // worker's time. Returns what it took of all workers' time.
  absl::Duration Settle(int worker, const ClassificationJobs& batch, absl::Duration run, bool failed, absl::Time now);

  // Why an item is not worth starting: even alone, by the fastest worker, it takes longer than is left. OK while there
  // is a worker that has run no item like it.
  absl::Status CheckDeadlineCanBeMet(const ClassificationJob& job, absl::Time now) const;
  // What an item is predicted to take of its batch, of all workers' time; zero as long as none like it has run.
  absl::Duration CostOf(const models::ClassifierItem& item) const;

  // Those that nobody waits for any more at `now`.
  ClassificationJobs TakeAbandoned(absl::Time now);
  ClassificationJobs TakeAll() { return line_.RemoveAll(); }

  int64_t size() const { return line_.size(); }
  // Batches that were taken and are not settled yet.
  int64_t running() const { return running_; }
  const WorkOrder::Load& load() const { return line_.load(); }
  WorkOrder::Load LoadOf(const std::string& client) const { return line_.LoadOf(client); }

 private:
  // A run of this shape took the worker so long.
  void Learn(int worker, const RunShape& shape, absl::Duration run, absl::Time now);
  // Takes the item that decides what the batch is of. Null if there is none.
  std::unique_ptr<ClassificationJob> TakeLeader(absl::Time now, bool on_probation, std::vector<Unmeetable>& unmeetable);
  // The next in order of those that may lead. Null if there is none.
  std::unique_ptr<ClassificationJob> TakeFirst(bool on_probation);

  const Options options_;
  FairQueue<std::unique_ptr<ClassificationJob>> line_;
  RunTimeEstimatorPerDevice estimates_;
  int64_t running_ = 0;
  int64_t batches_ = 0;  // that were taken
};

// Tokens of all documents of an item; 0 for an image.
int64_t TokensOf(const models::ClassifierItem& item);

}  // namespace longshort::core
