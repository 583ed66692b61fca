// How long a run of the model takes, learned from the runs so far.
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

// What a run is made of: so many units (tokens, images) of one kind (all token sequences; images of one size).
struct RunShape {
  int64_t kind = 0;
  int64_t units = 0;  // at least 1
};

struct RunTime {
  absl::Duration fast;     // as fast as it went of late: what takes longer than is left at this speed cannot make it
  absl::Duration typical;  // the median of late
};

// Runs of one kind whose units lie between two powers of two share what is learned of them, as time per unit.
//
// Thread: none of its own; whoever owns it guards it.
class RunTimeEstimator {
 public:
  void Learn(const RunShape& shape, absl::Duration run, absl::Time now);

  // Of a run of this shape alone; nullopt if none like it was seen.
  std::optional<RunTime> Of(const RunShape& shape, absl::Time now) const;
  // What this part of a run takes of it, judged by all runs of its kind, however long ago; zero if none was
  // seen.
  absl::Duration PartOfRun(const RunShape& part) const;

 private:
  // Kinds come from clients (sizes of images), so only so many are learned.
  static constexpr size_t kMaxKinds = 256;

  struct Kind {
    RecentValues seconds_per_unit;             // of all runs
    std::map<int, RecentValues> of_magnitude;  // by the bits of their units
    absl::Time latest;                         // run
  };

  // Makes room for a kind: forgets the one that has not run for the longest time.
  void ForgetOldest();

  std::map<int64_t, Kind> kinds_;
};

// How long a run of the model takes with the workers that there are.
class RunTimeEstimatorPerDevice final : public EstimatorPerDevice<RunTimeEstimator> {
 public:
  using EstimatorPerDevice::EstimatorPerDevice;

  // Of a run of this shape alone, by the fastest worker at its fastest. nullopt while there is one that has seen none
  // like it.
  std::optional<absl::Duration> Fastest(const RunShape& shape, absl::Time now) const;
  // What this part of a run takes of all workers' time (WorkerGroups); zero if none like it was seen.
  absl::Duration PartOfRun(const RunShape& part) const { return groups().Shared(PartsOfRun(part)); }
  // What of all workers' time it is that something of this shape took so much of one's.
  absl::Duration PartOfAll(int worker, const RunShape& shape, absl::Duration time) const {
    return groups().PartOfAll(groups().Of(worker), time, PartsOfRun(shape));
  }

 private:
  // [groups], of one worker's time.
  std::vector<absl::Duration> PartsOfRun(const RunShape& part) const {
    return Times([&part](const RunTimeEstimator& estimator) { return estimator.PartOfRun(part); });
  }
};

}  // namespace longshort::core
