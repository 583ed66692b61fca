#include "core/schedule/refusal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace longshort::core {
namespace {

constexpr char kTypeUrl[] = "type.longshort/core.Refusal";

struct Limit {
  int64_t queued;
  absl::Duration cost;
  std::string_view waiting_requests;  // for messages: which requests
  std::string_view requests_wait;
};

absl::Status CheckRoomWithin(const Limit& limit, const WorkOrder::Load& load, const WorkOrder::Load& ahead,
                             const WorkAttributes& next, const RefusalBounds& bounds) {
  const bool is_first = next.position_in_call.index == 0;
  if (load.waiting + (is_first ? next.position_in_call.count : 1) > limit.queued) {
    return RefuseForNow(ahead,
                        absl::StrCat("the queue is full: ", load.waiting, " ", std::string(limit.requests_wait),
                                     ", the limit is ", limit.queued),
                        bounds);
  }
  const absl::Duration more = is_first ? next.cost / next.position_in_call.share : absl::ZeroDuration();
  if (load.waiting > 0 && more > absl::ZeroDuration() && load.waiting_cost + more > limit.cost) {
    return RefuseForNow(ahead,
                        absl::StrCat("the queue is full: ", std::string(limit.waiting_requests), " will take ",
                                     absl::FormatDuration(load.waiting_cost), " and this one ",
                                     absl::FormatDuration(more), ", the limit is ", absl::FormatDuration(limit.cost)),
                        bounds);
  }
  return absl::OkStatus();
}

absl::Status CheckQueued(const char* name, int64_t queued) {
  if (queued >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", queued, ", must be at least 1"));
}

absl::Status CheckCost(const char* name, absl::Duration cost) {
  if (cost > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", absl::FormatDuration(cost), ", must be positive"));
}

}  // namespace

void SetRefusal(absl::Status& status, const Refusal& refusal) {
  status.SetPayload(kTypeUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(refusal.retry_after), " ", refusal.queue_depth)));
}

std::optional<Refusal> GetRefusal(const absl::Status& status) {
  const auto payload = status.GetPayload(kTypeUrl);
  if (!payload.has_value()) return std::nullopt;
  const std::pair<std::string, std::string> fields = absl::StrSplit(std::string(*payload), ' ');
  int64_t nanoseconds = 0;
  Refusal refusal;
  if (!absl::SimpleAtoi(fields.first, &nanoseconds)) return std::nullopt;
  if (!absl::SimpleAtoi(fields.second, &refusal.queue_depth)) return std::nullopt;
  refusal.retry_after = absl::Nanoseconds(nanoseconds);
  return refusal;
}

absl::Status Hold(int64_t amount, Budget::Share& share) {
  absl::Status status = share.Grow(amount);
  if (!status.ok()) SetRefusal(status, {.retry_after = kMinRetryDelay});
  return status;
}

absl::Status CheckLimits(const WaitingLimits& limits) {
  LS_RETURN_IF_ERROR(CheckQueued("max_queued", limits.max_queued));
  LS_RETURN_IF_ERROR(CheckCost("max_queued_cost", limits.max_queued_cost));
  LS_RETURN_IF_ERROR(CheckQueued("max_queued_per_client", limits.max_queued_per_client));
  return CheckCost("max_queued_cost_per_client", limits.max_queued_cost_per_client);
}

absl::Status CheckRoom(const WaitingLimits& limits, const WorkOrder::Load& ahead, const WorkOrder::Load& of_client,
                       const WorkAttributes& next, const RefusalBounds& bounds) {
  LS_RETURN_IF_ERROR(CheckRoomWithin({limits.max_queued, limits.max_queued_cost,
                                      "the requests that wait before this one", "requests wait before this one"},
                                     ahead, ahead, next, bounds));
  return CheckRoomWithin({limits.max_queued_per_client, limits.max_queued_cost_per_client,
                          "the requests of this client that wait", "requests of this client wait"},
                         of_client, ahead, next, bounds);
}

absl::Status RefuseForNow(const WorkOrder::Load& ahead, std::string_view message, const RefusalBounds& bounds) {
  absl::Status status = absl::ResourceExhaustedError(std::string(message));
  SetRefusal(status, {.retry_after = std::max(ahead.waiting_cost, bounds.retry_after),
                      .queue_depth = std::max(ahead.waiting, bounds.queue_depth)});
  return status;
}

absl::Status CheckDeadline(absl::Duration fast, absl::Time deadline, absl::Time now) {
  const absl::Duration remaining = deadline - now;
  if (fast <= remaining) return absl::OkStatus();
  const std::string needed =
      absl::StrCat("the request needs at least ", absl::FormatDuration(fast), ", but its deadline ");
  if (remaining <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError(absl::StrCat(needed, "passed ", absl::FormatDuration(-remaining), " ago"));
  }
  return absl::DeadlineExceededError(absl::StrCat(needed, "is in ", absl::FormatDuration(remaining)));
}

}  // namespace longshort::core
