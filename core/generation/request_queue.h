// Where the requests of one language model wait for a worker.
//
//   Push -> waits -> TakeFirst -> runs -> Settle
//                        ^_______________/ Return: its client takes nothing, or its worker failed
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/job.h"
#include "core/schedule/failure_policy.h"
#include "core/schedule/stream_estimates.h"
#include "core/schedule/waiting_limits.h"
#include "core/schedule/waiting_line.h"
#include "models/worker_device.h"

namespace longshort {

// The queue
// - keeps requests in the order of all work (core/schedule/work_order.h), and only as many as its limits allow;
// - learns from requests that ended how long requests take, of workers of one device together;
// - refuses a request that cannot make its deadline: when it comes, and when it is taken.
// Time is counted as if all workers shared each request (WorkerGroups): what waits will have been taken after so long.
//
// Which worker takes a request:
// - A request whose rows are parked with a worker is left to that worker, unless it stood aside there.
// - Any other request is left to the workers that have the least to do (StreamEstimates::Load).
// - A request whose next failure would be its last is left to workers that are not on trial.
// - Nothing is left to a worker that has no room, or that is busy and has not asked for long.
// - A worker takes the first request that it need not leave.
//
// Who is on trial: core/schedule/failure_policy.h.
//
// Thread-safe: any thread pushes, workers take. Never calls a listener.
class RequestQueue {
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

  // `workers`: those that take from it, numbered from 0; at least one.
  explicit RequestQueue(const Options& options, const std::vector<WorkerDevice>& workers = CpuWorkers(1))
      : options_(options),
        line_(options.order),
        estimates_(workers),
        workers_(workers.size()),
        trials_(static_cast<int>(workers.size())) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // `job` was submitted at job->times.submitted.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the request cannot make its
  // deadline, unless a worker is idle, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Push(std::unique_ptr<Job> job);

  // The next request for this worker, which is to be settled when it ends. Null
  // - if none waits for this worker;
  // - if those that wait are of clients that have as much running as they may;
  // - if the next one does not fit there (`fits`), or would not be read `soon`: what is behind it waits, too.
  // A request that `stands_aside` is not the next one: those behind it are looked at.
  // Requests that were returned come first, whatever there is to read. They must only fit.
  std::unique_ptr<Job> TakeFirst(
      const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
      absl::FunctionRef<bool(const Job&)> soon = [](const Job&) { return true; },
      absl::FunctionRef<bool(const Job&)> stands_aside = [](const Job&) { return false; });
  // Whether there is one for this worker, were there room.
  bool HasJobFor(const Taker& taker);
  // The worker has no room for another request. Until it asks again, what is parked with it may go elsewhere.
  void OnWorkerFull(int worker);
  // As WorkerTrials.
  void OnModelGivenUp(int worker);
  // A step of the worker's model succeeded in which something was read for the first time.
  void OnModelPassed(int worker);
  bool IsOnTrial(int worker) const;
  // Takes back jobs that were taken and not settled, to go on later. A job that is paused waits until it is not.
  void Return(std::vector<std::unique_ptr<Job>> jobs);
  // Whether a job that was taken is worth starting. Errors: DEADLINE_EXCEEDED if it cannot make its deadline with so
  // many tokens to read, unless a worker would be idle without it.
  absl::Status WhyHopeless(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // A job has ended. One that was never taken need not be settled.
  void Settle(Job& job, absl::Time now);

  // The jobs that nobody waits for any more: cancelled, or past their deadline at `now`. Returned ones, too.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  // How the worker's steps go now, and how many sequences share them at the most.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);

  // How many jobs wait for a worker. Returned ones count, unless they wait for their clients.
  int64_t size() const;
  // Of what waits, and of what was taken and not settled.
  WorkOrder::Load load() const;
  // Whether nothing waits, returned or not.
  bool empty() const;

  // From now on takes no more jobs but those returned.
  void Close();
  bool closed() const;
  // Whether it is closed, nothing waits, and nothing that was taken may come back.
  bool over() const;
  // Rises whenever something comes, goes, or may be taken by another worker: for whoever finds nothing to do.
  int64_t changes() const;
  // Waits until changes() is not `seen`, but no longer than `most`, and no longer than until what is there should be
  // looked at again.
  void WaitForChange(int64_t seen, absl::Duration most);
  // Counts as a change.
  void Wake();

 private:
  struct Worker {
    int64_t running = 0;  // as it last said
    absl::Time asked = absl::InfinitePast();
    bool has_room = true;
    bool has_enough_to_read = false;  // what it left would not have been read soon
  };

  int64_t WorkerCount() const { return static_cast<int64_t>(workers_.size()); }

  // All with mutex_ held.
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
  bool MayTake(int worker, const Job& job) const { return trials_.MayTake(worker, job.failures); }
  // Whether the worker has room and will come soon.
  bool IsOpen(const Worker& worker, absl::Time now) const;
  // Whether the job is not to be left to another worker.
  bool IsFor(const Taker& taker, const Job& job) const;
  std::vector<std::unique_ptr<Job>>::iterator FirstReturned(const Taker& taker);
  std::unique_ptr<Job> TakeFirstWaiting(const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
                                        absl::FunctionRef<bool(const Job&)> soon,
                                        absl::FunctionRef<bool(const Job&)> stands_aside);
  void SetHasRoom(int worker, bool has_room);
  void SetStoodAsideAtHome(Job& job, bool stood_aside);
  void Changed();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  WaitingLine<std::unique_ptr<Job>> line_;
  std::vector<std::unique_ptr<Job>> returned_;  // in the order of their numbers
  StreamEstimates estimates_;
  std::vector<Worker> workers_;
  WorkerTrials trials_;
  int64_t taken_ = 0;
  int64_t changes_ = 0;
  bool closed_ = false;
};

}  // namespace longshort
