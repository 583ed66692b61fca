#include "core/requests/serving_statistics.h"

#include <algorithm>

namespace longshort::core {

void ServingStatistics::CountAnswer(const Request& request, absl::Time wall_clock) {
  absl::Duration left = request.total;
  const auto take = [&left](absl::Duration part) {
    const absl::Duration taken = std::clamp(part, absl::ZeroDuration(), left);
    left -= taken;
    return taken;
  };
  answers_.Add(request.total);
  output_.Add(take(request.output));
  run_.Add(take(request.run));
  queue_.Add(take(request.queue));
  input_.Add(left);
  items_.fetch_add(request.items, std::memory_order_relaxed);
  last_milliseconds_.store(absl::ToUnixMillis(wall_clock), std::memory_order_relaxed);
}

void ServingStatistics::CountFailure(absl::Duration total, absl::Time wall_clock) {
  failures_.Add(total);
  last_milliseconds_.store(absl::ToUnixMillis(wall_clock), std::memory_order_relaxed);
}

}  // namespace longshort::core
