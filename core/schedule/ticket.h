// What the order of work knows of something that waits.
#pragma once

#include <string>

#include "absl/time/time.h"
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
};

}  // namespace longshort
