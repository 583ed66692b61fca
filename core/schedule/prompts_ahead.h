// Whether one more prompt would be read soon, or would only stand behind those that are being read.
//
// A request that cannot be read yet is better off in the queue: there its priority, client and deadline count, it can
// be refused in time, and how long it waits is what the queue's limits bound. So it is started when the next step has
// time for some of it. Before it, the planner (step_planner.h) reads the prompts with no more left to read than it has
// itself. A long prompt is not waited for, not even by a longer one, which would keep all behind it in the queue.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace longshort {

class PromptsAhead {
 public:
  // A prompt is long while it takes more steps than these.
  static constexpr int64_t kLongSteps = 16;

  // `rests`: what those that run have still to read of their prompts, in tokens. `rows`: how many rows of prompts the
  // next step has time for, at least 1.
  PromptsAhead(std::vector<int64_t> rests, int64_t rows) : rests_(std::move(rests)), rows_(rows) {}

  // Whether they leave some of the next step to a prompt of which so many tokens are to be read. True if there are
  // none.
  bool LeaveRoomFor(int64_t unread) const;

 private:
  std::vector<int64_t> rests_;
  int64_t rows_;
};

}  // namespace longshort
