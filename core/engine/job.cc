#include "core/engine/job.h"

#include "core/engine/abandonment.h"

namespace longshort {

absl::Status Job::WhyAbandoned(absl::Time now) const {
  return longshort::WhyAbandoned(context(), now, times.started != absl::InfiniteFuture());
}

}  // namespace longshort
