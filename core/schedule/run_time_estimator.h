// How long a run of the model takes, learned from the runs so far.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/schedule/recent_values.h"

namespace longshort {

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
  static constexpr size_t kMostKinds = 256;

  struct Kind {
    RecentValues seconds_per_unit;             // of all runs
    std::map<int, RecentValues> of_magnitude;  // by the bits of their units
    absl::Time latest;                         // run
  };

  // Makes room for a kind: forgets the one that has not run for the longest time.
  void ForgetOldest();

  std::map<int64_t, Kind> kinds_;
};

}  // namespace longshort
