// What is to happen in a simulation, and when.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace longshort::core {

class Timeline final {
 public:
  // What happens may add more, to happen at once too.
  void At(absl::Time time, std::function<void()> event) { events_.emplace(time, std::move(event)); }

  // Lets happen what is due, in order.
  void RunDue(absl::Time now) {
    while (next() <= now) events_.extract(events_.begin()).mapped()();
  }

  // When something happens next.
  absl::Time next() const { return events_.empty() ? absl::InfiniteFuture() : events_.begin()->first; }

 private:
  std::multimap<absl::Time, std::function<void()>> events_;
};

}  // namespace longshort::core
