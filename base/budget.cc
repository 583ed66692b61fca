#include "base/budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<Budget::Share> Budget::Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more) {
  int64_t before = budget->held_;
  while (before == 0 || before + amount + more <= budget->capacity_) {
    if (budget->held_.compare_exchange_weak(before, before + amount)) return Share(budget, amount);
  }
  return absl::ResourceExhaustedError(absl::StrCat(budget->names_.holders, " hold ", before, " ", budget->names_.unit,
                                                   " and this one has ", amount + more, "; together they may hold ",
                                                   budget->capacity_));
}

}  // namespace longshort
