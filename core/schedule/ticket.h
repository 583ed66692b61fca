// What the order of work knows of something that waits.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "core/schedule/call_part.h"
#include "core/schedule/priority.h"

namespace longshort {

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

}  // namespace longshort
