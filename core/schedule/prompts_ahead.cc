#include "core/schedule/prompts_ahead.h"

#include <algorithm>

namespace longshort {

int64_t PromptsAhead::LongPrompts(Priority least) const {
  return std::count_if(prompts_.begin(), prompts_.end(),
                       [&](const Prompt& prompt) { return prompt.priority >= least && IsLong(prompt.all); });
}

bool PromptsAhead::LeaveRoomFor(int64_t unread) const {
  const int64_t longest_before = std::min(unread, kLongSteps * rows_);
  int64_t before = 0;
  for (const Prompt& prompt : prompts_) before += prompt.rest <= longest_before ? prompt.rest : 0;
  return before < rows_;
}

}  // namespace longshort
