#include "core/engine/job.h"

#include <atomic>

namespace longshort {

absl::Status Job::WhyAbandoned(absl::Time now) const {
  if (context().cancelled->load(std::memory_order_relaxed)) return absl::CancelledError("the client cancelled");
  if (now < context().deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(times.started == absl::InfiniteFuture()
                                         ? "the deadline passed while the request waited in the queue"
                                         : "the deadline passed while the request was running");
}

}  // namespace longshort
