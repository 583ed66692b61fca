// The jobs of one language model's requests that no worker has: their order, their limits, and their predicted costs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/requests/job.h"
#include "core/schedule/estimators.h"
#include "core/schedule/fair_queue.h"
#include "core/schedule/refusal.h"
#include "models/worker_device.h"

namespace longshort::core {

// - Keeps jobs in the order of all work (core/schedule/work_order.h), within the limits. Returned jobs come before.
// - Learns from completed jobs how long jobs take, for each device.
// - Refuses a job that cannot meet its deadline, when it arrives and again when it is taken.
// Time is measured as if all workers shared each job (WorkerGroups): the queue is empty after that time.
//
// A job that counts as running was taken and not completed, and does not wait for its client (Running).
//
// Thread: not thread-safe; the owner guards it.
class PendingJobs final {
 public:
  struct Options {
    WaitingLimits limits = {};
    // A request is due this long after it arrived, or at its deadline if that is earlier. Among the requests of one
    // client, the earliest due time goes first.
    absl::Duration patience = absl::Minutes(1);
    WorkOrder::Options order = {};
  };
  using Suits = absl::FunctionRef<bool(Job&)>;

  // REQUIRES: at least one worker.
  PendingJobs(const Options& options, const std::vector<models::WorkerDevice>& workers)
      : options_(options), workers_(static_cast<int64_t>(workers.size())), queue_(options.order), estimates_(workers) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // Adds a job that was submitted at job->times.submitted. `free_streams`: the jobs that the workers would take now.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if there is no room, DEADLINE_EXCEEDED if no worker is idle and the job
  // cannot meet its deadline. On an error the caller still owns the job: destroying it may take other locks.
  absl::Status Add(std::unique_ptr<Job>&& job, int64_t free_streams);
  // Puts a job that was taken back into the order of work, to continue later; its past time is charged.
  void Requeue(std::unique_ptr<Job> job);
  // Puts back jobs that were taken and not completed, to continue before all others. A paused job waits until it is
  // resumed.
  void Return(std::vector<std::unique_ptr<Job>> jobs);

  // The first returned job that is not paused and suits; null if there is none.
  Job* FirstReturned(Suits suits) const;
  // The first other job in order that suits; null if there is none. BeginTurn keeps its turn.
  Job* FirstInOrder(Suits suits) const;
  // The rounds of the order begin that the job needs (WorkOrder::First). REQUIRES: it waits in order.
  void BeginTurn(const Job& job);
  // Takes a job that First... has returned, for a worker.
  std::unique_ptr<Job> TakeReturned(const Job& job, int worker);
  std::unique_ptr<Job> TakeInOrder(const Job& job, int worker);

  // Whether a job that was taken is worth starting. Errors: DEADLINE_EXCEEDED if it cannot meet its deadline with this
  // many tokens to read, unless a worker would be idle without it.
  absl::Status CheckDeadlineCanBeMet(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // A job has ended. Returns whether it was taken before.
  bool Complete(Job& job, absl::Time now);

  // Removes the jobs that suit, returned or not.
  std::vector<std::unique_ptr<Job>> RemoveIf(Suits suits);

  // Sets the current cost of a worker's steps, and the maximum number of sequences in one.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);
  const StreamEstimatorPerDevice& estimates() const { return estimates_; }

  // The number of jobs that wait for a worker. Returned jobs count, unless they are paused.
  int64_t size() const { return queue_.size() + static_cast<int64_t>(returned_.size()) - WaitingForClients(); }
  // The jobs that were taken and not completed, except paused ones.
  int64_t Running() const { return queue_.load().running - WaitingForClients(); }
  // The clients whose jobs wait or run.
  int64_t active_clients() const { return queue_.active_clients(); }
  const WorkOrder::Load& load() const { return queue_.load(); }
  WorkOrder::Load LoadOf(const std::string& client) const { return queue_.LoadOf(client); }
  bool any_in_order() const { return !queue_.empty(); }
  bool any_returned() const { return !returned_.empty(); }

 private:
  using Costs = FairQueue<std::unique_ptr<Job>>::Costs;

  // The returned jobs that are paused.
  int64_t WaitingForClients() const;
  // The predicted costs of the rest of the job, in the time of all workers.
  Costs CostsOf(const Job& job) const;
  absl::Status CheckRoomFor(WorkAttributes next, int64_t free_streams) const;
  // Errors: DEADLINE_EXCEEDED if the job cannot meet its deadline.
  absl::Status CheckTime(const Job& job, int64_t tokens_to_read, absl::Time now) const;
  // Completes it in the order of work, with the time since it was last taken.
  void Charge(Job& job);

  const Options options_;
  const int64_t workers_;
  FairQueue<std::unique_ptr<Job>> queue_;
  std::vector<std::unique_ptr<Job>> returned_;  // in the order of their numbers
  StreamEstimatorPerDevice estimates_;
  int64_t taken_ = 0;
};

}  // namespace longshort::core
