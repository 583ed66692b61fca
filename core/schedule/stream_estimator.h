// Predicts how long a request to a language model takes, from earlier steps and requests.
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

// The number of tokens of a request: in its prompt, and the maximum that it generates and reads.
struct StreamTokens {
  int64_t prompt = 0;
  int64_t generated = 0;
};

// The worker time of a request.
struct StreamTime {
  absl::Duration prefill;  // until its prompt was read
  absl::Duration all;
};

// Thread: not thread-safe; the owner guards it.
class StreamEstimator {
 public:
  // Sets the current cost of steps, and how many sequences share a step when all streams are taken. The cost of a
  // worker that has just started, for example after a failure, does not replace what is known.
  void SetSteps(const StepCost& cost, int64_t max_streams);
  // Records the times of a request whose prompt was read. `others_wait`: whether requests wait now that it has ended.
  void Learn(const StreamTokens& tokens, const StreamTime& time, bool others_wait, absl::Time now);

  // Whether enough steps have run for Cost to be known.
  bool knows_steps() const { return step_cost_.reliable(); }
  // The worker time that a request is likely to take, with the most recent effect of stop strings and cached prefixes,
  // however old. Zero unless knows_steps().
  absl::Duration Cost(const StreamTokens& tokens) const;
  // The part of the cost that is likely to go into reading its prompt. Zero unless knows_steps().
  absl::Duration PrefillCost(const StreamTokens& tokens) const;
  // The shortest time until its prompt is read; the client can use the first token before the rest exists. nullopt
  // until a request has ended.
  std::optional<absl::Duration> FastPrefill(int64_t prompt_tokens, absl::Time now) const;

 private:
  // For a request that reads all of its prompt and generates its maximum number of tokens.
  absl::Duration CostOfPrompt(int64_t tokens) const { return step_cost_.prefill_row() * tokens; }
  absl::Duration CostOfAll(const StreamTokens& tokens) const;

  StepCost step_cost_;
  int64_t max_streams_ = 1;
  // The measured times, as fractions of the above.
  RecentValues prefill_fractions_;
  RecentValues fractions_;
};

// Predicts how long a request to a language model takes with the engine's workers.
class StreamEstimatorPerDevice final : public EstimatorPerDevice<StreamEstimator> {
 public:
  using EstimatorPerDevice::EstimatorPerDevice;

  // Whether the cost is known for any worker.
  bool knows_steps() const;
  // The time of all workers (WorkerGroups) that a request is likely to take. Zero unless knows_steps().
  absl::Duration Cost(const StreamTokens& tokens) const { return groups().Shared(Costs(tokens)); }
  // As Cost, for PrefillCost.
  absl::Duration PrefillCost(const StreamTokens& tokens) const {
    return groups().Shared(Times([&](const StreamEstimator& estimator) { return estimator.PrefillCost(tokens); }));
  }
  // Converts the time that a request took of one worker to the time of all workers.
  absl::Duration PartOfAll(int worker, const StreamTokens& tokens, absl::Duration time) const {
    return groups().PartOfAll(groups().Of(worker), time, Costs(tokens));
  }
  // The shortest time until its prompt is read, by the fastest worker. nullopt while any group of workers has no
  // measurements.
  std::optional<absl::Duration> FastPrefill(int64_t prompt_tokens, absl::Time now) const {
    return Min([&](const StreamEstimator& estimator) { return estimator.FastPrefill(prompt_tokens, now); });
  }
  // How busy a worker with this many running requests is, compared with others: their number, or, if workers differ,
  // the time that they take.
  double Load(int worker, int64_t running) const;

 private:
  // [groups], the time of one worker.
  std::vector<absl::Duration> Costs(const StreamTokens& tokens) const {
    return Times([&tokens](const StreamEstimator& estimator) { return estimator.Cost(tokens); });
  }
};

}  // namespace longshort::core
