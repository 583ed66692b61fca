// Refusals of work, and what they report to the client. Work beyond the queue's limits is refused at once, so that the
// client can try another server. Work that cannot meet its deadline is refused before it uses a worker.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/schedule/ticket.h"
#include "core/schedule/work_order.h"

namespace longshort::core {

// What a refusal for want of room tells the client: when to come back, and how long the line is.
struct Refusal {
  // When there should be room again: by what the work that waits is predicted to take, if that is what has the room.
  absl::Duration retry_after;
  // Requests that waited; 0 if it is not work that has the room.
  int64_t queue_depth = 0;
};

// Carried by a RESOURCE_EXHAUSTED status as a payload of core's own, for who answers the client.
void SetRefusal(absl::Status& status, const Refusal& refusal);
// nullopt if the status carries none.
std::optional<Refusal> GetRefusal(const absl::Status& status);

// How much work may wait for a worker. Work beyond it is refused at once.
struct WaitingLimits {
  // Requests that may wait.
  int64_t max_queued = 256;
  // Worker time that they may be predicted to take, all together: about the time that the last of them waits. A call
  // that comes while nothing waits is taken whatever it takes, and so is one of which nothing is known; it counts once
  // something is.
  absl::Duration max_queued_cost = absl::Seconds(10);
  // The same for each client, so that one of them cannot fill the line before the others. Without clients to tell
  // apart, anything less than the limits above is room given away.
  int64_t max_queued_per_client = std::numeric_limits<int64_t>::max();
  absl::Duration max_queued_cost_per_client = absl::InfiniteDuration();
};

// Errors: INVALID_ARGUMENT for limits out of range.
absl::Status CheckLimits(const WaitingLimits& limits);

// Whether there is room for the next behind what waits in all and of its client. The first part of a call asks for all
// of it, whatever its own share; for the others only what waits is counted, in case others came in between.
// Errors: RESOURCE_EXHAUSTED naming the limit, with a Refusal.
absl::Status CheckRoom(const WaitingLimits& limits, const WorkOrder::Load& all, const WorkOrder::Load& of_client,
                       const Ticket& next);

// Shortest retry delay. Earlier retries cost more than they gain.
inline constexpr absl::Duration kSoonestRetry = absl::Milliseconds(50);

// RESOURCE_EXHAUSTED with this message, and a Refusal to come back when what waits will have been taken, or after
// `least`.
absl::Status RefuseForNow(const WorkOrder::Load& all, std::string_view message, absl::Duration least = kSoonestRetry);

// Whether work can be done in time. `fast`: what the work takes at the fastest. What waits before it does not count:
// that may be cancelled, or refused itself. Errors: DEADLINE_EXCEEDED naming the predicted time, and the remaining time
// or how long ago the deadline passed.
absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now);

}  // namespace longshort::core
