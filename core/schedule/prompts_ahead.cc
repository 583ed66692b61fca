#include "core/schedule/prompts_ahead.h"

#include <algorithm>
#include <iterator>

namespace longshort {

PromptsAhead::PromptsAhead(const std::vector<int64_t>& rests, int64_t rows) : rows_(rows) {
  std::copy_if(rests.begin(), rests.end(), std::back_inserter(short_rests_),
               [rows](int64_t rest) { return rest <= kLongSteps * rows; });
}

bool PromptsAhead::LeaveRoomFor(int64_t unread) const {
  int64_t before = 0;
  for (const int64_t rest : short_rests_) before += rest <= unread ? rest : 0;
  return before < rows_;
}

}  // namespace longshort
