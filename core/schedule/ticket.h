// What the order of work knows of something that waits: how important it is, which part of a call, and when it is due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace longshort::core {

// How important a request is to its client. A higher one gets more of the worker's time, never all of it
// (core/schedule/priority_rounds.h).
enum class Priority { kLow, kNormal, kHigh };

inline constexpr size_t kPriorities = 3;

// One of several requests that a call is made of, which are sent one right after the other.
struct CallPart {
  int64_t index = 0;
  int64_t count = 1;
  // Of the call's work, about; over 0.
  double share = 1;
};

// What the order of work knows of something that waits.
struct Ticket {
  Priority priority = Priority::kNormal;
  // Who sent it; "" is everybody who did not say.
  std::string client = {};
  // What is due first goes first, among the work of one client and priority.
  absl::Time due = absl::InfiniteFuture();
  // Worker time that it is predicted to take; zero while nothing is known.
  absl::Duration cost = absl::ZeroDuration();
  // There is room for all parts of a call or for none: the first is asked for all.
  CallPart part = {};
  // By how many clients that was shared when it was taken (core/schedule/client_order.h).
  int64_t shared_by = 1;
  // In which time of waiting its priority was charged for it when it was taken (core/schedule/work_order.h); 0 in none.
  int64_t charged_in = 0;
};

}  // namespace longshort::core
