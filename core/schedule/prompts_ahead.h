// Decides whether to start one more prompt: whether it would be read soon, or only wait behind the running prompts.
//
// A request that cannot be read yet should stay in the queue: there its priority, client and deadline count, it can be
// refused in time, and the queue's limits bound its wait. So a prompt is started when the next step has time for some
// of it. The planner (step_planner.h) serves prompts with less left to read first. Prompts do not wait for a long
// prompt, and not even a longer one does, because it would keep all requests behind it in the queue.
//
// A step advances only one or two of several long prompts, but all of them hold their streams and cache pages. So a
// long prompt is started only while the running long prompts of its priority or a higher one take less than half of the
// streams. Otherwise it waits, and the requests behind it pass. It does not wait forever, because part of every step
// serves the first prompt in order. Prompts of a lower priority never hold it back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/schedule/work_attributes.h"

namespace longshort::core {

class PromptsAhead {
 public:
  // A prompt is long if it takes more steps than this.
  static constexpr int64_t kLongSteps = 16;

  // A running prompt, in tokens.
  struct Prompt {
    int64_t all = 0;   // unread when it was started
    int64_t rest = 0;  // still unread
    Priority priority = Priority::kNormal;
  };

  // `rows`: the number of prompt rows that the next step has time for, at least 1.
  PromptsAhead(std::vector<Prompt> prompts, int64_t rows) : prompts_(std::move(prompts)), rows_(rows) {}

  // How many long prompts of a priority and those above it may be read at once, given the number of streams.
  static int64_t MaxLong(int64_t streams) { return std::max<int64_t>(1, streams / 2); }

  // Whether a prompt with this many unread tokens is long.
  bool IsLong(int64_t unread) const { return unread > kLongSteps * rows_; }
  // How many of the running prompts of this priority and those above it were long when they started.
  int64_t LongPrompts(Priority lowest) const {
    return std::count_if(prompts_.begin(), prompts_.end(),
                         [&](const Prompt& prompt) { return prompt.priority >= lowest && IsLong(prompt.all); });
  }

  // Whether the running prompts leave some of the next step to a prompt with this many unread tokens. True if there are
  // none.
  bool LeaveRoomFor(int64_t unread) const {
    const int64_t longest_before = std::min(unread, kLongSteps * rows_);
    int64_t before = 0;
    for (const Prompt& prompt : prompts_) before += prompt.rest <= longest_before ? prompt.rest : 0;
    return before < rows_;
  }

 private:
  std::vector<Prompt> prompts_;
  int64_t rows_;
};

}  // namespace longshort::core
