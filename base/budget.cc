#include "base/budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<TokenBudget::Share> TokenBudget::Take(const std::shared_ptr<TokenBudget>& budget, int64_t tokens,
                                                     int64_t more) {
  int64_t before = budget->held_;
  while (before == 0 || before + tokens + more <= budget->capacity_) {
    if (budget->held_.compare_exchange_weak(before, before + tokens)) return Share(budget, tokens);
  }
  return absl::ResourceExhaustedError(absl::StrCat("the requests in flight hold ", before,
                                                   " prompt tokens and this one has ", tokens + more,
                                                   "; together they may hold ", budget->capacity_));
}

}  // namespace longshort
