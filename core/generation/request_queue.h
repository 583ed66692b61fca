// The queue of one language model's requests: its jobs (PendingJobs), the choice of their workers (Placement) and of
// jobs that make room (Displacement), behind one lock.
//
//   Push -> waits -> TakeFirst -> runs -> Complete
//                        ^_______________/ Return: its client does not read, or its worker failed
//                                          Requeue: it was displaced
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/generation/pending_jobs.h"
#include "core/generation/placement.h"
#include "core/requests/job.h"
#include "core/schedule/model_worker.h"
#include "models/worker_device.h"

namespace longshort::core {

// A worker takes the first request that it need not leave to another one.
//
// Thread-safe: any thread pushes, workers take. Never calls a listener.
class RequestQueue final : public WorkQueue {
 public:
  using Options = PendingJobs::Options;
  using Taker = core::Taker;

  // A worker's decision about the next job.
  enum class Decision {
    kTake,
    kSkip,         // decide about the job after it
    kWaitForRoom,  // take no job: the cache or the streams have no room for this one
    kWaitToRead,   // take no job: this one would not be read soon
    kSearch,       // decide again after Search
  };
  using Decide = absl::FunctionRef<Decision(const Job&)>;
  // What takes too long to do with the queue's lock: finding out which of the job's tokens are in the worker's cache.
  // Called without the lock. Meanwhile the job stays in the queue, and other workers pass over it.
  using Search = absl::FunctionRef<void(const Job&)>;

  // `workers`: the workers that take from it, numbered from 0; at least one.
  explicit RequestQueue(const Options& options,
                        const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1))
      : WorkQueue(workers.size()),
        jobs_(options, workers),
        placement_(workers.size(), jobs_, probation_),
        displacement_(workers.size(), jobs_) {}

  // Errors: as PendingJobs::Check.
  static absl::Status Check(const Options& options) { return PendingJobs::Check(options); }

  // For submitting threads:

  // Errors: as PendingJobs::Add; UNAVAILABLE once closed. On an error the job is destroyed.
  absl::Status Push(std::unique_ptr<Job> job);

  // As PendingJobs::size.
  int64_t size() const;
  // The waiting jobs, and those that were taken and not completed.
  WorkOrder::Load load() const;
  // The same of one client.
  WorkOrder::Load LoadOf(const std::string& client) const;
  // The number of clients with waiting or running jobs.
  int64_t active_clients() const;
  // Whether no job waits, returned or not.
  bool empty() const;

  // For workers:

  // A worker was started. Call it before the worker takes jobs.
  void OnWorkerStarted(const Taker& taker);
  // Takes the next job for this worker, by the worker's decisions. Complete it when it ends. Returns null
  // - if no job waits for this worker;
  // - if all waiting jobs are of clients that have reached their limit of running jobs;
  // - if the worker decides to wait, or skips all.
  // Returned jobs come before all others. The worker decides about the first returned job only: it takes that one or
  // none.
  std::unique_ptr<Job> TakeFirst(
      const Taker& taker, Decide decide, Search search = [](const Job&) {});
  // Whether a job waits for this worker, regardless of room.
  bool HasJobFor(const Taker& taker);
  // The worker has no room for another request. Until it takes work again, jobs parked with it may go to other workers.
  void OnWorkerFull(int worker);
  // Which of the worker's `running` jobs must be displaced so that the worker can take, by these decisions, a waiting
  // job of a client below its share; null if none (Displacement). Call it if there is no room.
  const Job* FindDisplaced(
      const Taker& taker, Decide decide, absl::Span<const Job* const> running, Search search = [](const Job&) {});
  // As PendingJobs::Requeue, for a displaced job. `taker` includes it.
  void Requeue(std::unique_ptr<Job> job, const Taker& taker);
  // As in PendingJobs:
  void Return(std::vector<std::unique_ptr<Job>> jobs);
  absl::Status CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);
  // A job has ended. One that was never taken need not be completed.
  void Complete(Job& job, absl::Time now);

  // Removes the jobs, returned or not, that are cancelled or past their deadline at `now`. Leaves a job that a worker
  // searches for; TakeAll, too.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

 private:
  bool IsEmpty() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration MaxSleep() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Repeats `attempt`, which gets the worker's decisions, until it meets no job with kSearch. Returns its result.
  template <typename Attempt>
  auto AfterSearches(Decide decide, Search search, Attempt attempt);
  std::unique_ptr<Job> TakeFirstInOrder(const Taker& taker, Decide decide) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetHasRoom(int worker, bool has_room) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PendingJobs jobs_ ABSL_GUARDED_BY(mutex_);
  Placement placement_ ABSL_GUARDED_BY(mutex_);
  Displacement displacement_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace longshort::core
