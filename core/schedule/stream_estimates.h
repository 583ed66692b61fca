// How long a request to a language model will take with the workers that there are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/stream_estimator.h"
#include "core/schedule/worker_groups.h"

namespace longshort {

// A StreamEstimator for each group of equally fast workers.
//
// Thread: none of its own; whoever owns it guards it.
class StreamEstimates {
 public:
  // REQUIRES: at least one worker.
  explicit StreamEstimates(absl::Span<const WorkerDevice> workers) : groups_(workers), estimators_(groups_.count()) {}

  // As StreamEstimator's, of one worker.
  void SetSteps(int worker, const StepCost& cost, int64_t max_streams);
  void Learn(int worker, const StreamTokens& tokens, const StreamTime& time, bool others_wait, absl::Time now);

  // Whether costs can be told of any worker.
  bool knows_steps() const;
  // What a request is likely to take of all workers' time (WorkerGroups). Zero unless knows_steps().
  absl::Duration Cost(const StreamTokens& tokens) const;
  // What of all workers' time it is that a request took so much of one's.
  absl::Duration PartOfAll(int worker, const StreamTokens& tokens, absl::Duration time) const;
  // The time until its prompt is read, at the fastest, by the fastest worker. nullopt while there is one of which
  // nothing is known.
  std::optional<absl::Duration> FastPrefill(int64_t prompt_tokens, absl::Time now) const;
  // How much a worker has to do that runs so many requests, to be compared with others: their number, or, where workers
  // differ, the time that each takes.
  double Load(int worker, int64_t running) const;

 private:
  // [groups], of one worker's time.
  std::vector<absl::Duration> Costs(const StreamTokens& tokens) const;

  WorkerGroups groups_;
  std::vector<StreamEstimator> estimators_;  // [groups]
};

}  // namespace longshort
