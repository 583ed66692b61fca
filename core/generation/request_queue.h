// Where the requests of one language model wait for a worker.
//
//   Push -> waits -> TakeFirst -> runs -> Settle
//                        ^_______________/ Return: its client takes nothing, or its worker failed
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/job.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/refusal.h"
#include "core/schedule/stream_estimator.h"
#include "core/schedule/work_queue.h"
#include "models/worker_device.h"

namespace longshort::core {

// The queue
// - keeps requests in the order of all work (core/schedule/work_order.h), and only as many as its limits allow;
// - learns from requests that ended how long requests take, of workers of one device together;
// - refuses a request that cannot make its deadline: when it comes, and when it is taken.
// Time is counted as if all workers shared each request (WorkerGroups): what waits will have been taken after so long.
//
// Which worker takes a request:
// - A request whose rows are parked with a worker is left to that worker, unless that worker skipped it.
// - Any other request is left to the workers that have the least to do (StreamEstimatorPerDevice::Load).
// - A request whose next failure would be its last is left to workers that are not on probation.
// - Nothing is left to a worker that has no room, or that is busy and has not asked for long.
// - A worker takes the first request that it need not leave.
//
// Who is on probation: core/schedule/failure_policy.h.
//
// Thread-safe: any thread pushes, workers take. Never calls a listener.
class RequestQueue final : public WorkQueue {
 public:
  struct Options {
    WaitingLimits limits = {};
    // A request is due so long after it came, or at its deadline if that is earlier. Among one client's requests, the
    // one that is due first goes first.
    absl::Duration patience = absl::Minutes(1);
    WorkOrder::Options order = {};
  };

  // A worker that asks for a job.
  struct Taker {
    int worker = 0;
    int64_t running = 0;  // how many it runs already
    absl::Time now;
  };

  // What a worker decides about the job that is next.
  enum class Decision {
    kTake,
    kSkip,         // the job behind it is next
    kWaitForRoom,  // no job is taken: the cache or the streams have no room for this one
    kWaitToRead,   // no job is taken: this one would not be read soon
  };
  using Decide = absl::FunctionRef<Decision(const Job&)>;

  // `workers`: those that take from it, numbered from 0; at least one.
  explicit RequestQueue(const Options& options,
                        const std::vector<models::WorkerDevice>& workers = models::CpuWorkers(1))
      : WorkQueue(workers.size()),
        options_(options),
        line_(options.order),
        estimates_(workers),
        workers_(workers.size()) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // For callers that submit:

  // `job` was submitted at job->times.submitted.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the request cannot make its
  // deadline, unless a worker is idle, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Push(std::unique_ptr<Job> job);

  // How many jobs wait for a worker. Returned ones count, unless they wait for their clients.
  int64_t size() const;
  // Of what waits, and of what was taken and not settled.
  WorkOrder::Load load() const;
  // Whether nothing waits, returned or not.
  bool empty() const;

  // For workers:

  // The next job for this worker by its decisions, which is to be settled when it ends. Null
  // - if none waits for this worker;
  // - if those that wait are of clients that have as much running as they may;
  // - if the worker waits for the next one, or skips all.
  // Jobs that were returned come before all others. The worker decides about the first of them only: it takes that one
  // or none.
  std::unique_ptr<Job> TakeFirst(const Taker& taker, Decide decide);
  // Whether there is one for this worker, were there room.
  bool HasJobFor(const Taker& taker);
  // The worker has no room for another request. Until it asks again, what is parked with it may go elsewhere.
  void OnWorkerFull(int worker);
  // Takes back jobs that were taken and not settled, to go on later. A job that is paused waits until it is not.
  void Return(std::vector<std::unique_ptr<Job>> jobs);
  // Whether a job that was taken is worth starting. Errors: DEADLINE_EXCEEDED if it cannot make its deadline with so
  // many tokens to read, unless a worker would be idle without it.
  absl::Status CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // A job has ended. One that was never taken need not be settled.
  void Settle(Job& job, absl::Time now);

  // The jobs that nobody waits for any more: cancelled, or past their deadline at `now`. Returned ones, too.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  // How the worker's steps go now, and how many sequences share them at the most.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);

 private:
  struct Worker {
    int64_t running = 0;  // as it last said
    absl::Time asked = absl::InfinitePast();
    bool has_room = true;
    bool has_enough_to_read = false;  // what it left would not have been read soon
  };

  // All with mutex_ held.
  bool IsEmpty() const override { return line_.empty() && returned_.empty() && line_.load().running == 0; }
  absl::Duration LongestSleep() const override;
  // Jobs that were taken and not settled, but for those that wait for their clients.
  int64_t Running() const;
  // Of those returned.
  int64_t WaitingForClients() const;
  // What the job is predicted to take, of all workers' time.
  absl::Duration CostOf(const Job& job) const;
  // Whether a worker that asks has more to do than another one.
  bool HasMoreToDo(const Taker& taker, int other) const;
  // Errors: DEADLINE_EXCEEDED if the job cannot make its deadline.
  absl::Status CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  void NoteAsking(const Taker& taker);
  bool MayTake(int worker, const Job& job) const { return probation_.MayTake(worker, job.steps.failures); }
  // Whether the worker has room and will come soon.
  bool IsOpen(const Worker& worker, absl::Time now) const;
  // Whether the job is not to be left to another worker.
  bool IsFor(const Taker& taker, const Job& job) const;
  std::vector<std::unique_ptr<Job>>::iterator FirstReturned(const Taker& taker);
  std::unique_ptr<Job> TakeFirstWaiting(const Taker& taker, Decide decide);
  void SetHasRoom(int worker, bool has_room);
  void SetSkippedAtHome(Job& job, bool skipped);

  const Options options_;
  // Guarded by mutex_:
  FairQueue<std::unique_ptr<Job>> line_;
  std::vector<std::unique_ptr<Job>> returned_;  // in the order of their numbers
  StreamEstimatorPerDevice estimates_;
  std::vector<Worker> workers_;
  int64_t taken_ = 0;
};

}  // namespace longshort::core
