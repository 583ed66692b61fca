#include "core/engine/token_budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<TokenBudget::Share> TokenBudget::Take(const std::shared_ptr<TokenBudget>& budget, int64_t tokens) {
  const int64_t before = budget->held_.fetch_add(tokens);
  Share share(budget, tokens);
  if (before == 0 || before + tokens <= budget->capacity_) return share;
  return absl::ResourceExhaustedError(absl::StrCat("the requests in flight hold ", before,
                                                   " prompt tokens and this one has ", tokens,
                                                   "; together they may hold ", budget->capacity_));
}

}  // namespace longshort
