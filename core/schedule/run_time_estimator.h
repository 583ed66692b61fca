// Predicts how long a run of the model takes, from earlier runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/schedule/recent_values.h"
#include "core/schedule/worker_groups.h"

namespace longshort::core {

// The shape of a run: a number of units (tokens, images) of one kind (token sequences; images of one size).
struct RunShape {
  int64_t kind = 0;
  int64_t units = 0;  // at least 1
};

struct RunTime {
  absl::Duration fast;     // the shortest recent time: work with less time left cannot meet its deadline
  absl::Duration typical;  // the recent median
};

// Runs of one kind whose units lie between two powers of two share their measurements, as time per unit.
//
// Thread: not thread-safe; the owner guards it.
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

}  // namespace longshort::core
