#include "base/budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace longshort {

absl::StatusOr<Budget::Share> Budget::Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more) {
  int64_t before = budget->held_;
  while (before == 0 || before + amount + more <= budget->capacity_) {
    if (budget->held_.compare_exchange_weak(before, before + amount)) return Share(budget, amount);
  }
  return budget->Refuse(before, amount + more);
}

absl::Status Budget::Share::Grow(int64_t amount) {
  int64_t others = budget_->held_ - amount_;
  while (others == 0 || others + amount <= budget_->capacity_) {
    int64_t before = others + amount_;
    if (budget_->held_.compare_exchange_weak(before, others + amount)) {
      amount_ = amount;
      return absl::OkStatus();
    }
    others = before - amount_;
  }
  return budget_->Refuse(others, amount);
}

absl::Status Budget::Refuse(int64_t before, int64_t amount) const {
  return absl::ResourceExhaustedError(absl::StrCat(names_.holders, " hold ", before, " ", names_.unit,
                                                   " and this one has ", amount, "; together they may hold ",
                                                   capacity_));
}

}  // namespace longshort
