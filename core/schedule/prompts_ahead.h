// Whether one more prompt would be read soon, or would only stand behind those that are being read.
//
// A request that cannot be read yet is better off in the queue: there its priority, client and deadline count, it can
// be refused in time, and how long it waits is what the queue's limits bound. So it is started when the next step has
// time for some of it. Before it, the planner (step_planner.h) reads the prompts with no more left to read than it has
// itself. A long prompt is not waited for, not even by a longer one, which would keep all behind it in the queue.
//
// Of several long prompts only one or two get on in a step, and all hold their streams and their parts of the cache. So
// a long prompt is started only while those of its priority or a higher one that are being read take less than half of
// the streams; otherwise it waits, and lets those behind it in the queue pass. That has an end, since a part of every
// step is for the prompt that comes first in order. Those of a lower priority do not hold it back, however many they
// are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/schedule/ticket.h"

namespace longshort::core {

class PromptsAhead {
 public:
  // A prompt is long while it takes more steps than these.
  static constexpr int64_t kLongSteps = 16;

  // One that is being read, in tokens.
  struct Prompt {
    int64_t all = 0;   // that were to be read when it was started
    int64_t rest = 0;  // that are still to be read
    Priority priority = Priority::kNormal;
  };

  // `rows`: how many rows of prompts the next step has time for, at least 1.
  PromptsAhead(std::vector<Prompt> prompts, int64_t rows) : prompts_(std::move(prompts)), rows_(rows) {}

  // How many long prompts of a priority and those above it may be read at once where so many streams can run.
  static int64_t MaxLong(int64_t streams) { return std::max<int64_t>(1, streams / 2); }

  // Whether a prompt is long of which so many tokens are to be read.
  bool IsLong(int64_t unread) const { return unread > kLongSteps * rows_; }
  // How many of those that are being read were when they were started, of this priority and those above it.
  int64_t LongPrompts(Priority least) const {
    return std::count_if(prompts_.begin(), prompts_.end(),
                         [&](const Prompt& prompt) { return prompt.priority >= least && IsLong(prompt.all); });
  }

  // Whether they leave some of the next step to a prompt of which so many tokens are to be read. True if there are
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
