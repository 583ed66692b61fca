// Where requests wait for a worker, in the order of all work (core/schedule/work_order.h), and only so much.
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
#include "core/jobs/job.h"
#include "core/schedule/stream_estimates.h"
#include "core/schedule/waiting_limits.h"
#include "core/schedule/waiting_line.h"
#include "models/worker_device.h"

namespace longshort {

// Learns what requests take from those that ended, and refuses what cannot make its deadline: when it comes, and when
// it is taken, of workers of one device together. Time is counted as if all workers shared each request
// (WorkerGroups): what waits will have been taken after so long.
//
// A request whose rows are parked with a worker is left to that one, unless it let others pass there, and any other to
// those that have the least to do (StreamEstimates::Load), as long as they have room; a worker takes what comes behind
// what it leaves. One whose next failure would be its last is left to workers that are not on trial.
//
// Thread-safe: any thread pushes, workers take. Never calls a listener.
class RequestQueue {
 public:
  struct Options {
    WaitingLimits limits = {};
    // A request without a deadline is due so long after it came: among one client's, it goes before those with a later
    // one.
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
      : options_(options), line_(options.order), estimates_(workers), workers_(workers.size()) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // `job` was submitted at job->times.submitted.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the request cannot make its
  // deadline, unless a worker is idle, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Push(std::unique_ptr<Job> job);

  // The next for this worker, which is to be settled when it ends; null if none waits for it, if those that wait are of
  // clients that have as much running as they may, or if the next does not `fit` there, or would not be read `soon`: it
  // is not overtaken but by what comes before it in the order, unless it `lets_pass` what is behind it. Those that were
  // returned come first, whatever there is to read.
  std::unique_ptr<Job> TakeFirst(
      const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
      absl::FunctionRef<bool(const Job&)> soon = [](const Job&) { return true; },
      absl::FunctionRef<bool(const Job&)> lets_pass = [](const Job&) { return false; });
  // Whether there is one for this worker, were there room.
  bool HasJobFor(const Taker& taker);
  // The worker has no room for another: what is parked with it may go elsewhere, until it asks again.
  void Pass(int worker);
  // The worker's model was given up: until the next one passes a step the worker is on trial, unless so are all.
  void OnModelGivenUp(int worker);
  // A step of the worker's model passed in which something was read for the first time.
  void OnStepPassed(int worker);
  bool IsOnTrial(int worker) const;
  // Jobs that were taken, go on later, and are not settled yet. One that is paused waits until it is not.
  void Return(std::vector<std::unique_ptr<Job>> jobs);
  // Why a job that was taken is not worth starting: it cannot make its deadline with so many tokens to read. OK if a
  // worker would be idle without it.
  absl::Status WhyHopeless(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // A job that was taken has ended; what was never taken need not be settled.
  void Settle(Job& job, absl::Time now);

  // Those that nobody waits for any more, returned ones too: cancelled, or past their deadline at `now`.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  // How the worker's steps go now, and how many sequences share them at the most.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);

  // Jobs that wait for a worker: returned ones too, unless they wait for their clients.
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
  // For whoever finds nothing to do: rises whenever something comes, goes, or may be taken by another.
  int64_t changes() const;
  // Waits until changes() is not `seen`, or what is there should be looked at again, at most so long.
  void WaitForChange(int64_t seen, absl::Duration most);
  // Counts as a change.
  void Wake();

 private:
  struct Worker {
    int64_t running = 0;  // as it last said
    absl::Time asked = absl::InfinitePast();
    bool has_room = true;
    bool has_enough_to_read = false;  // what it left would not have been read soon
    bool reliable = true;             // its model, if the last was given up, has passed a step
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
  bool OnTrial(int worker) const;
  bool MayTake(int worker, const Job& job) const { return !job.failures.on_last_try() || !OnTrial(worker); }
  // Whether the worker has room and will come soon.
  bool IsOpen(const Worker& worker, absl::Time now) const;
  // Whether the job is not to be left to another worker.
  bool IsFor(const Taker& taker, const Job& job) const;
  std::vector<std::unique_ptr<Job>>::iterator FirstReturned(const Taker& taker);
  std::unique_ptr<Job> TakeFirstWaiting(const Taker& taker, absl::FunctionRef<bool(const Job&)> fits,
                                        absl::FunctionRef<bool(const Job&)> soon,
                                        absl::FunctionRef<bool(const Job&)> lets_pass);
  void SetHasRoom(int worker, bool has_room);
  void SetLetPassAtHome(Job& job, bool let_pass);
  void Changed();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  WaitingLine<std::unique_ptr<Job>> line_;
  std::vector<std::unique_ptr<Job>> returned_;  // in the order of their numbers
  StreamEstimates estimates_;
  std::vector<Worker> workers_;
  int64_t taken_ = 0;
  int64_t changes_ = 0;
  bool closed_ = false;
};

}  // namespace longshort
