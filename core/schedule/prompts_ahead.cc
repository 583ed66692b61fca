#include "core/schedule/prompts_ahead.h"

#include <algorithm>

namespace longshort {

bool PromptsAhead::LeaveRoomFor(int64_t unread) const {
  const int64_t longest_before = std::min(unread, kLongSteps * rows_);
  int64_t before = 0;
  for (const int64_t rest : rests_) before += rest <= longest_before ? rest : 0;
  return before < rows_;
}

}  // namespace longshort
