// Where requests wait for a worker, in the order of all work (core/schedule/work_order.h), and only so much.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/engine/job.h"
#include "core/schedule/stream_estimator.h"
#include "core/schedule/waiting_limits.h"
#include "core/schedule/waiting_line.h"

namespace longshort {

// Learns what requests take from those that ended, and refuses what cannot make its deadline: when it comes, and when
// it is taken.
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

  explicit RequestQueue(const Options& options) : options_(options), line_(options.order) {}

  // Errors: INVALID_ARGUMENT for options out of range.
  static absl::Status Check(const Options& options);

  // `job` was submitted at job->times.submitted.
  // Errors: RESOURCE_EXHAUSTED with a Refusal if too much waits, DEADLINE_EXCEEDED if the request cannot make its
  // deadline, unless the worker is idle, UNAVAILABLE once closed; then the job is dropped.
  absl::Status Push(std::unique_ptr<Job> job);

  // The next in order, which is to be settled when it ends; null if none waits, or if all that wait are of clients that
  // have as much running as they may.
  std::unique_ptr<Job> TakeFirst();
  // Why a job that was taken is not worth starting: it cannot make its deadline. OK if there is nothing else to do.
  absl::Status WhyHopeless(const Job& job, absl::Time now) const;
  // A job that was taken has ended; what was never taken need not be settled.
  void Settle(Job& job, absl::Time now);

  // Those that nobody waits for any more: cancelled, or past their deadline at `now`.
  std::vector<std::unique_ptr<Job>> TakeAbandoned(absl::Time now);
  std::vector<std::unique_ptr<Job>> TakeAll();

  // How steps go now, and how many sequences share them at the most.
  void SetSteps(const StepCost& cost, int64_t max_streams);

  int64_t size() const;
  // Of what waits, and of what was taken and not settled.
  WorkOrder::Load load() const;

  // From now on takes no more jobs.
  void Close();
  // Waits until there is a job (true), or the queue is closed and empty (false).
  bool WaitForJob();

 private:
  // Errors: DEADLINE_EXCEEDED if the job cannot make its deadline. REQUIRES: mutex_ is held.
  absl::Status CheckTime(const Job& job, absl::Time now) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  WaitingLine<std::unique_ptr<Job>> line_;  // guarded by mutex_
  StreamEstimator estimator_;               // guarded by mutex_
  int64_t taken_ = 0;                       // guarded by mutex_
  bool closed_ = false;                     // guarded by mutex_
};

}  // namespace longshort
