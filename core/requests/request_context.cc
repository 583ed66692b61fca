#include "core/requests/request_context.h"

#include <atomic>

namespace longshort {

absl::Status WhyAbandoned(const RequestContext& context, absl::Time now, bool started) {
  if (context.cancelled->load(std::memory_order_relaxed)) return absl::CancelledError("the client cancelled");
  if (now < context.deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(started ? "the deadline passed while the request was running"
                                             : "the deadline passed while the request waited in the queue");
}

}  // namespace longshort
