// How long a request to a language model will take, learned from the steps and from the requests so far.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/recent_values.h"
#include "core/schedule/step_cost.h"
#include "core/schedule/worker_groups.h"

namespace longshort::core {

// The tokens of a request: of its prompt, and those that are sampled and read at the most.
struct StreamTokens {
  int64_t prompt = 0;
  int64_t generated = 0;
};

// What a request took of the worker's time.
struct StreamTime {
  absl::Duration prefill;  // until its prompt was read
  absl::Duration all;
};

// Thread: none of its own; whoever owns it guards it.
class StreamEstimator {
 public:
  // How steps go now, and how many sequences share one when all streams are taken. What a worker says that has only
  // just begun, after a failure say, takes nothing away from what is known.
  void SetSteps(const StepCost& cost, int64_t max_streams);
  // A request whose prompt was read took so long, from beginning to end; whether `others_wait` now that it has ended.
  void Learn(const StreamTokens& tokens, const StreamTime& time, bool others_wait, absl::Time now);

  // Whether so many steps were run that costs can be told.
  bool knows_steps() const { return step_cost_.reliable(); }
  // The worker time that a request is likely to take, stop strings and prefixes that need not be read again included as
  // they were met last, however long ago. Zero unless knows_steps().
  absl::Duration Cost(const StreamTokens& tokens) const;
  // The time until its prompt is read, at the fastest; what is sampled then is of use before the rest is there. nullopt
  // while no request has ended.
  std::optional<absl::Duration> FastPrefill(int64_t prompt_tokens, absl::Time now) const;

 private:
  // Of requests that read all of their prompts and generate all that they may.
  absl::Duration CostOfPrompt(int64_t tokens) const { return step_cost_.prefill_row() * tokens; }
  absl::Duration CostOfAll(const StreamTokens& tokens) const;

  StepCost step_cost_;
  int64_t max_streams_ = 1;
  // What requests took, as a fraction of the above.
  RecentValues prefill_fractions_;
  RecentValues fractions_;
};

// How long a request to a language model will take with the workers that there are.
class StreamEstimatorPerDevice final : public EstimatorPerDevice<StreamEstimator> {
 public:
  using EstimatorPerDevice::EstimatorPerDevice;

  // Whether costs can be told of any worker.
  bool knows_steps() const;
  // What a request is likely to take of all workers' time (WorkerGroups). Zero unless knows_steps().
  absl::Duration Cost(const StreamTokens& tokens) const { return groups().Shared(Costs(tokens)); }
  // What of all workers' time it is that a request took so much of one's.
  absl::Duration PartOfAll(int worker, const StreamTokens& tokens, absl::Duration time) const {
    return groups().PartOfAll(groups().Of(worker), time, Costs(tokens));
  }
  // The time until its prompt is read, at the fastest, by the fastest worker. nullopt while there is one of which
  // nothing is known.
  std::optional<absl::Duration> FastPrefill(int64_t prompt_tokens, absl::Time now) const {
    return Min([&](const StreamEstimator& estimator) { return estimator.FastPrefill(prompt_tokens, now); });
  }
  // How much a worker has to do that runs so many requests, to be compared with others: their number, or, where workers
  // differ, the time that each takes.
  double Load(int worker, int64_t running) const;

 private:
  // [groups], of one worker's time.
  std::vector<absl::Duration> Costs(const StreamTokens& tokens) const {
    return Times([&tokens](const StreamEstimator& estimator) { return estimator.Cost(tokens); });
  }
};

}  // namespace longshort::core
