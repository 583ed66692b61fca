// How long a run of the model takes with the workers that there are.
#pragma once

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/run_time_estimator.h"
#include "core/schedule/worker_groups.h"

namespace longshort {

// A RunTimeEstimator for each group of equally fast workers.
//
// Thread: none of its own; whoever owns it guards it.
class RunTimeEstimates {
 public:
  // REQUIRES: at least one worker.
  explicit RunTimeEstimates(absl::Span<const WorkerDevice> workers) : groups_(workers), estimators_(groups_.count()) {}

  // What one worker has learned and learns.
  RunTimeEstimator& Of(int worker) { return estimators_[groups_.Of(worker)]; }

  // Of a run of this shape alone, by the fastest worker at its fastest. nullopt while there is one that has seen none
  // like it.
  std::optional<absl::Duration> Fastest(const RunShape& shape, absl::Time now) const;
  // What this part of a run takes of all workers' time (WorkerGroups); zero if none like it was seen.
  absl::Duration PartOfRun(const RunShape& part) const { return groups_.Shared(PartsOfRun(part)); }
  // What of all workers' time it is that something of this shape took so much of one's.
  absl::Duration PartOfAll(int worker, const RunShape& shape, absl::Duration time) const {
    return groups_.PartOfAll(groups_.Of(worker), time, PartsOfRun(shape));
  }

 private:
  // [groups], of one worker's time.
  std::vector<absl::Duration> PartsOfRun(const RunShape& part) const;

  WorkerGroups groups_;
  std::vector<RunTimeEstimator> estimators_;  // [groups]
};

}  // namespace longshort
