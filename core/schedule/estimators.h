// Predictions of how long work takes, from earlier work: batches of a classifier (RunTimeEstimator), steps of a
// language model (StepCost) and its requests (StreamEstimator).
//
// An engine's workers may be unlike: --devices=cpu,cuda:0 serves a model on the CPUs and on a GPU, and a machine may
// have GPUs of two kinds. So the workers of a device share their measurements (EstimatorPerDevice), and the engine
// measures work in the time of all workers together (WorkerGroups).
//
// Thread: nothing here is thread-safe, except WorkerGroups, which never changes; the owner guards it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "models/worker_device.h"

namespace longshort::core {

// The most recent values of a repeated measurement, their minimum and their median.
//
// Remembers a fixed number of values. So one stall does not change the median, and a permanent change does after a few
// measurements. Min(now) and Median(now) halve every kHalfLife since the last value. So a caller that refuses slow work
// will eventually try it again.
class RecentValues {
 public:
  // `value` is at least 0.
  void Add(double value, absl::Time now);

  bool empty() const { return count_ == 0; }
  // The smallest value and the median. REQUIRES: not empty.
  double Min(absl::Time now) const;
  double Median(absl::Time now) const;
  // The median without decay. For callers that bound the queue's length, and admit any work while the queue is empty.
  double Median() const { return sorted_[(count_ - 1) / 2]; }

  static constexpr size_t kCapacity = 15;
  static constexpr absl::Duration kHalfLife = absl::Seconds(10);

 private:
  double DecayAt(absl::Time now) const;

  // The first count_ of each are set: in the order of their measurement, from next_ on, and ascending. A value is added
  // once a run and the median is read several times a request.
  std::array<double, kCapacity> values_ = {};
  std::array<double, kCapacity> sorted_ = {};
  size_t count_ = 0;
  size_t next_ = 0;
  absl::Time latest_;
};

// Groups of equally fast workers: the workers of one device.
//
// Work is measured in the time of all workers together, as if all of them shared each piece. If one of n equal workers
// takes t for a piece, the piece takes t / n of that time. If workers differ, it takes one over the sum of their
// speeds.
class WorkerGroups final {
 public:
  // REQUIRES: at least one worker.
  explicit WorkerGroups(absl::Span<const models::WorkerDevice> workers);

  int64_t workers() const { return static_cast<int64_t>(group_of_.size()); }
  size_t count() const { return sizes_.size(); }
  size_t Of(int worker) const { return group_of_[worker]; }

  // The time that all workers together take for a piece of work that takes one worker of group g `times[g]`. A time of
  // zero is unknown: such a worker counts as the mean of the others. Returns zero if no time is known.
  absl::Duration Shared(absl::Span<const absl::Duration> times) const;
  // Converts `time` of one worker of `group` to the time of all workers, for a piece of work of these `times`.
  absl::Duration PartOfAll(size_t group, absl::Duration time, absl::Span<const absl::Duration> times) const;

 private:
  std::vector<size_t> group_of_;  // [workers]
  std::vector<int64_t> sizes_;    // [groups] workers
};

// An Estimator for each group of equally fast workers.
template <typename Estimator>
class EstimatorPerDevice {
 public:
  // REQUIRES: at least one worker.
  explicit EstimatorPerDevice(absl::Span<const models::WorkerDevice> workers)
      : groups_(workers), estimators_(groups_.count()) {}

  // The estimator that a worker updates and reads.
  Estimator& Of(int worker) { return estimators_[groups_.Of(worker)]; }

 protected:
  ~EstimatorPerDevice() = default;

  const WorkerGroups& groups() const { return groups_; }
  const std::vector<Estimator>& estimators() const { return estimators_; }

  // The result of `time_of` for each group.
  template <typename TimeOf>
  std::vector<absl::Duration> Times(const TimeOf& time_of) const {
    std::vector<absl::Duration> times;
    times.reserve(estimators_.size());
    for (const Estimator& estimator : estimators_) times.push_back(time_of(estimator));
    return times;
  }
  // The smallest result of `time_of`; nullopt while it returns nullopt for any group.
  template <typename TimeOf>
  std::optional<absl::Duration> Min(const TimeOf& time_of) const {
    absl::Duration min = absl::InfiniteDuration();
    for (const Estimator& estimator : estimators_) {
      const std::optional<absl::Duration> time = time_of(estimator);
      if (!time.has_value()) return std::nullopt;
      min = std::min(min, *time);
    }
    return min;
  }

 private:
  WorkerGroups groups_;
  std::vector<Estimator> estimators_;  // [groups]
};

// The shape of a run: a number of units (tokens, images) of one kind (token sequences; images of one size).
struct RunShape {
  int64_t kind = 0;
  int64_t units = 0;  // at least 1
};

struct RunTime {
  absl::Duration fast;     // the shortest recent time: work with less time left cannot meet its deadline
  absl::Duration typical;  // the recent median
};

// Predicts how long a run of the model takes one worker, from earlier runs. Runs of one kind whose units lie between
// two powers of two share their measurements, as time per unit.
class RunTimeEstimator {
 public:
  void Learn(const RunShape& shape, absl::Duration run, absl::Time now);

  // The time of a run of this shape; nullopt if there was no similar run.
  std::optional<RunTime> Of(const RunShape& shape, absl::Time now) const;
  // The time that this part of a run takes, from all earlier runs of its kind, however old; zero if there was none.
  absl::Duration PartOfRun(const RunShape& part) const;

 private:
  // Clients choose the kinds (sizes of images), so their number is limited.
  static constexpr size_t kMaxKinds = 256;

  struct Kind {
    RecentValues seconds_per_unit;             // of all runs
    std::map<int, RecentValues> of_magnitude;  // by the bits of their units
    absl::Time latest;                         // run
  };

  // Makes room for a kind: removes the one that has not run for the longest time.
  void RemoveOldest();

  std::map<int64_t, Kind> kinds_;
};

// Predicts how long a run of the model takes with the engine's workers.
class RunTimeEstimatorPerDevice final : public EstimatorPerDevice<RunTimeEstimator> {
 public:
  using EstimatorPerDevice::EstimatorPerDevice;

  // The shortest time of a run of this shape, by the fastest worker. nullopt while any group of workers has had no
  // similar run.
  std::optional<absl::Duration> Fastest(const RunShape& shape, absl::Time now) const;
  // The time of all workers (WorkerGroups) that this part of a run takes; zero if there was no similar run.
  absl::Duration PartOfRun(const RunShape& part) const { return groups().Shared(PartsOfRun(part)); }
  // Converts the time that a run of this shape took of one worker to the time of all workers.
  absl::Duration PartOfAll(int worker, const RunShape& shape, absl::Duration time) const {
    return groups().PartOfAll(groups().Of(worker), time, PartsOfRun(shape));
  }

 private:
  // [groups], the time of one worker.
  std::vector<absl::Duration> PartsOfRun(const RunShape& part) const {
    return Times([&part](const RunTimeEstimator& estimator) { return estimator.PartOfRun(part); });
  }
};

// The rows of a step: one for each sequence that decodes, and the tokens of the pieces of prompts and documents.
struct StepRows {
  int64_t decoding = 0;
  int64_t prefill = 0;
};

// Predicts how long a step of the language model takes, from earlier steps.
//
// The cost has a fixed part (every weight is read once) and a part for each row. The cost of a row grows with the keys
// that it sees, up to M + L tokens' worth: the estimate follows that, as it follows all other changes.
//
// Each step corrects the parts by the factor by which it was mispredicted, in proportion to their contribution. So
// parts stay positive, an unused part does not change, and a stall counts like a step that took four times as long.
//
// A value type; copies are independent.
class StepCost {
 public:
  // Records the time of a step with these rows, at least one. A time of zero is ignored.
  void Learn(const StepRows& rows, absl::Duration step);

  // Whether anything was learned. Until then all costs are zero.
  bool known() const { return steps_ > 0; }
  // Whether the cost is reliable enough to refuse requests by it. The very first steps may take many times longer than
  // later ones. Ten steps take seconds at most, and until then requests are limited by their number.
  bool reliable() const { return steps_ >= 10; }
  absl::Duration Of(const StepRows& rows) const;
  absl::Duration fixed() const { return absl::Seconds(fixed_); }
  absl::Duration decoding_row() const { return absl::Seconds(decoding_row_); }
  absl::Duration prefill_row() const { return absl::Seconds(prefill_row_); }

 private:
  double fixed_ = 0;
  double decoding_row_ = 0;
  double prefill_row_ = 0;
  int64_t steps_ = 0;
};

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

// Predicts how long a request takes one worker, from its steps and from earlier requests.
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
