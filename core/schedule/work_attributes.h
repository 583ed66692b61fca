// The scheduling attributes of queued work: its priority, client, due time, cost and position in its call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace longshort::core {

// The importance of a request, as its client states it. A higher priority gets more of the worker's time than lower
// ones of all clients, never all of it (core/schedule/work_order.h).
enum class Priority { kLow, kNormal, kHigh };

inline constexpr size_t kPriorities = 3;

// The position of a request among those that one call sends, one right after the other.
struct PositionInCall {
  int64_t index = 0;
  int64_t count = 1;
  // The request's fraction of the call's work, approximately; over 0.
  double share = 1;
};

// The scheduling attributes of queued work.
struct WorkAttributes {
  Priority priority = Priority::kNormal;
  // The client that sent it; "" stands for all clients without an id.
  std::string client = {};
  // Among the work of one client and priority, the earliest due time goes first.
  absl::Time due = absl::InfiniteFuture();
  // Predicted worker time; zero while unknown.
  absl::Duration cost = absl::ZeroDuration();
  // The part of the cost during which no work behind it can start, even if a worker has a free place: reading a prompt.
  absl::Duration start_cost = absl::ZeroDuration();
  // The queue admits all parts of a call or none: the first part is checked with the cost of all.
  PositionInCall position_in_call = {};
  // The number of clients that shared the clock when it was taken (core/schedule/work_order.h).
  int64_t shared_by = 1;
  // The waiting period in which it was taken and charged to its priority (core/schedule/work_order.h); 0 if none.
  int64_t charged_period = 0;
};

}  // namespace longshort::core
