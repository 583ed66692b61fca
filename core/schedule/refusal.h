// Refusals of work, and what they report to the client. Work beyond the queue's limits is refused at once, so that the
// client can try another server. Work that cannot meet its deadline is refused before it uses a worker.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/budget.h"
#include "core/schedule/work_attributes.h"
#include "core/schedule/work_order.h"

namespace longshort::core {

// What a RESOURCE_EXHAUSTED answer reports to the client: when to retry, and the length of the queue.
struct Refusal {
  // When there should be room again: predicted from the cost of the queued work, if that work takes the room.
  absl::Duration retry_after;
  // Queued requests; 0 if the limit is not about queued work.
  int64_t queue_depth = 0;
};

// Attaches the refusal to a RESOURCE_EXHAUSTED status, as a payload that the server reads.
void SetRefusal(absl::Status& status, const Refusal& refusal);
// nullopt if the status carries none.
std::optional<Refusal> GetRefusal(const absl::Status& status);

// As Budget::Share::Grow, for a call: the error has a Refusal, to retry soon.
absl::Status Hold(int64_t amount, Budget::Share& share);

// Limits of the queue. Work beyond them is refused at once.
struct WaitingLimits {
  // Maximum number of requests that wait before a new one. Other clients' requests count up to as many for each client
  // as the new one's client has. So a client with few requests is admitted although another one fills the queue.
  int64_t max_queued = 256;
  // Maximum predicted time that a new request and those before it take: about the time that it waits. A call is always
  // admitted while nothing waits before it. Classifiers' items count as 0 until their cost is known.
  absl::Duration max_queued_cost = absl::Seconds(10);
  // The same limits for each client, so that one client cannot fill the queue. If clients are not distinguished, a
  // value below the limits above only wastes capacity.
  int64_t max_queued_per_client = std::numeric_limits<int64_t>::max();
  absl::Duration max_queued_cost_per_client = absl::InfiniteDuration();
};

// Errors: INVALID_ARGUMENT for limits out of range.
absl::Status CheckLimits(const WaitingLimits& limits);

// Shortest retry delay. Earlier retries cost more than they gain.
inline constexpr absl::Duration kMinRetryDelay = absl::Milliseconds(50);
// The same while it is not known how long work takes. gRPC retries a call four times at most, and must not have used
// them up before the first work is done.
inline constexpr absl::Duration kMinRetryDelayOfUnknown = absl::Seconds(1);

// What a Refusal says at least.
struct RefusalBounds {
  absl::Duration retry_after = kMinRetryDelay;
  int64_t queue_depth = 0;
};

// Whether the queue has room for `next`: before it in the order, and for its client. `ahead` is WorkOrder::Ahead, so
// one client's work does not refuse another's. The first part of a call is checked with the cost of the whole call.
// Later parts are checked without their own cost, in case other requests were queued in between. Errors:
// RESOURCE_EXHAUSTED naming the limit, with a Refusal.
absl::Status CheckRoom(const WaitingLimits& limits, const WorkOrder::Load& ahead, const WorkOrder::Load& of_client,
                       const WorkAttributes& next, const RefusalBounds& bounds = {});

// RESOURCE_EXHAUSTED with this message, and a Refusal to retry when the work `ahead` will have been taken.
absl::Status RefuseForNow(const WorkOrder::Load& ahead, std::string_view message, const RefusalBounds& bounds = {});

// Whether work can meet its deadline. `fast`: the shortest time that it takes. Queued work before it does not count: it
// may be cancelled, or refused itself. Errors: DEADLINE_EXCEEDED naming the predicted time, and the remaining time or
// how long ago the deadline passed.
absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now);

}  // namespace longshort::core
