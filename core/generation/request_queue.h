// The queue of one language model's requests.
//
//   Push -> waits -> TakeFirst -> runs -> Complete
//                        ^_______________/ Return: its client does not read, or its worker failed
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
#include "core/requests/job.h"
#include "core/schedule/estimators.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/model_worker.h"
#include "core/schedule/refusal.h"
#include "models/worker_device.h"

namespace longshort::core {

// The queue
// - keeps requests in the order of all work (core/schedule/work_order.h), within its limits;
// - learns from completed requests how long requests take, for each device;
// - refuses a request that cannot meet its deadline, when it arrives and again when it is taken.
// Time is measured as if all workers shared each request (WorkerGroups): the queue is empty after that time.
//
// Which worker takes a request:
// - A request whose rows are parked with a worker is left to that worker, unless that worker skipped it.
// - Any other request is left to the least busy workers (StreamEstimatorPerDevice::Load).
// - A request on its last try is left to workers that are not on probation (core/schedule/failure_policy.h).
// - No request is left to a worker that has no room, or that is busy and has not taken work for long.
// - A worker takes the first request that it need not leave.
//
// Thread-safe: any thread pushes, workers take. Never calls a listener.
class RequestQueue final : public WorkQueue {
 public:
  struct Options {
    WaitingLimits limits = {};
    // A request is due this long after it arrived, or at its deadline if that is earlier. Among the requests of one
    // client, the earliest due time goes first.
    absl::Duration patience = absl::Minutes(1);
    WorkOrder::Options order = {};
  };

  // A worker that takes a job.
  struct Taker {
    int worker = 0;
    int64_t running = 0;      // the number of its running jobs
    int64_t max_streams = 1;  // the maximum of it
    absl::Time now;
  };

  // A worker's decision about the next job.
  enum class Decision {
    kTake,
    kSkip,         // decide about the job after it
    kWaitForRoom,  // take no job: the cache or the streams have no room for this one
    kWaitToRead,   // take no job: this one would not be read soon
  };
  using Decide = absl::FunctionRef<Decision(const Job&)>;

  // `workers`: the workers that take from it, numbered from 0; at least one.
  explicit RequestQueue(const Options& options,
                        const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1))
      : WorkQueue(workers.size()),
        options_(options),
        queue_(options.order),
        estimates_(workers),
        workers_(workers.size()) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // For submitting threads:

  // Adds a job that was submitted at job->times.submitted.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if the queue is full, DEADLINE_EXCEEDED if no worker is idle and the
  // request cannot meet its deadline, UNAVAILABLE once closed. On an error the job is destroyed.
  absl::Status Push(std::unique_ptr<Job> job);

  // The number of jobs that wait for a worker. Returned jobs count, unless they are paused.
  int64_t size() const;
  // The waiting jobs, and those that were taken and not completed.
  WorkOrder::Load load() const;
  // The same of one client.
  WorkOrder::Load LoadOf(const std::string& client) const;
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
  std::unique_ptr<Job> TakeFirst(const Taker& taker, Decide decide);
  // Whether a job waits for this worker, regardless of room.
  bool HasJobFor(const Taker& taker);
  // The worker has no room for another request. Until it takes work again, jobs parked with it may go to other workers.
  void OnWorkerFull(int worker);
  // Which of the worker's `running` jobs must be displaced so that the worker can take, by these decisions, a waiting
  // job of a client that runs less than an equal share of the running jobs; null if none. It is the latest job of the
  // client that runs the most, if that is more than a share. A job of a higher priority is displaced only for a client
  // that runs nothing. So a client that is alone may have all streams, and others need not wait until one of them ends.
  // Call it if there is no room.
  const Job* FindDisplaced(const Taker& taker, Decide decide, absl::Span<const Job* const> running);
  // Puts a displaced job back into the order of work, to continue later; its past time is charged. `taker` includes it.
  // For some time the worker keeps the room for clients below their share, so that their next jobs displace none.
  void Requeue(std::unique_ptr<Job> job, const Taker& taker);
  // Puts back jobs that were taken and not completed, to continue later. A paused job waits until it is resumed.
  void Return(std::vector<std::unique_ptr<Job>> jobs);
  // Whether a job that was taken is worth starting. Errors: DEADLINE_EXCEEDED if it cannot meet its deadline with this
  // many tokens to read, unless a worker would be idle without it.
  absl::Status CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // A job has ended. One that was never taken need not be completed.
  void Complete(Job& job, absl::Time now);

  // Removes the jobs, returned or not, that are cancelled or past their deadline at `now`.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  // Sets the current cost of the worker's steps, and the maximum number of sequences in one.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);

 private:
  struct Worker {
    int64_t running = 0;                          // at `last_seen`
    int64_t max_streams = 0;                      // 0 until it is known
    absl::Time last_seen = absl::InfinitePast();  // when it last looked for a job
    bool has_room = true;
    bool has_enough_to_read = false;  // it left a job that would not have been read soon
    // Until then it runs fewer than `full_with` jobs, except for clients below their share.
    absl::Time keeps_room_until = absl::InfinitePast();
    int64_t full_with = 0;
  };

  bool IsEmpty() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.empty() && returned_.empty() && queue_.load().running == 0;
  }
  absl::Duration MaxSleep() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Jobs that were taken and not completed, except paused ones.
  int64_t Running() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The returned jobs that are paused.
  int64_t WaitingForClients() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The predicted costs of the rest of the job, in the time of all workers.
  FairQueue<std::unique_ptr<Job>>::Costs CostsOf(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Errors: RESOURCE_EXHAUSTED if the queue has no room for a job.
  absl::Status CheckRoomFor(WorkAttributes next) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The streams that waiting jobs will get when their workers look next.
  int64_t FreeStreams() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An equal share of the running jobs for each client with work; at least 1.
  int64_t ShareOfRunning() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsBelowShare(const std::string& client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return queue_.LoadOf(client).running < ShareOfRunning();
  }
  // Whether the worker keeps its last room for other clients than this job's.
  bool KeepsRoomFrom(const Taker& taker, const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the taker is busier than the other worker.
  bool IsBusierThan(const Taker& taker, int other) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Errors: DEADLINE_EXCEEDED if the job cannot meet its deadline.
  absl::Status CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Completes it in the order of work, with the time since it was last taken.
  void Charge(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordState(const Taker& taker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayTake(int worker, const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return probation_.MayTake(worker, job.steps.failures);
  }
  // Whether the worker has room and is likely to take work soon.
  bool CanTakeSoon(const Worker& worker, absl::Time now) const;
  // Whether this worker may take the job, instead of leaving it to another.
  bool IsFor(const Taker& taker, const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::unique_ptr<Job>>::iterator FirstReturned(const Taker& taker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Job> TakeFirstWaiting(const Taker& taker, Decide decide) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetHasRoom(int worker, bool has_room) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetSkippedByOwner(Job& job, bool skipped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  FairQueue<std::unique_ptr<Job>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Job>> returned_ ABSL_GUARDED_BY(mutex_);  // in the order of their numbers
  StreamEstimatorPerDevice estimates_ ABSL_GUARDED_BY(mutex_);
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mutex_);
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace longshort::core
