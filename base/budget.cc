#include "base/budget.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace longshort {

absl::StatusOr<Budget::Share> Budget::Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more) {
  LS_RETURN_IF_ERROR(budget->TryAdd(0, amount, more));
  return Share(budget, amount);
}

absl::Status Budget::Share::Grow(int64_t amount) {
  if (amount <= amount_) {
    SetAmount(amount);
    return absl::OkStatus();
  }
  const absl::Status status = budget_->TryAdd(amount_, amount - amount_, 0);
  if (status.ok()) amount_ = amount;
  return status;
}

void Budget::Add(int64_t amount) {
  for (Budget* budget = this; budget != nullptr; amount *= budget->in_parent_, budget = budget->parent_.get()) {
    budget->NotePeak(budget->held_ += amount);
  }
}

int64_t Budget::LimitAt(int64_t before) const {
  if (!leaves_room_) return capacity_;
  return std::min(capacity_, before + std::max<int64_t>(0, parent_->left() - before) / 2);
}

absl::Status Budget::TryAdd(int64_t own, int64_t amount, int64_t more) {
  int64_t before = held_;
  do {
    if (const int64_t limit = LimitAt(before); before + amount + more > limit) {
      return absl::ResourceExhaustedError(absl::StrCat(names_.holders, " hold ", before - own, " ", names_.unit,
                                                       " and this one has ", own + amount + more,
                                                       "; together they may hold ", limit));
    }
  } while (!held_.compare_exchange_weak(before, before + amount));
  if (parent_ != nullptr) {
    if (absl::Status status = parent_->TryAdd(own * in_parent_, amount * in_parent_, more * in_parent_); !status.ok()) {
      held_ -= amount;
      return status;
    }
  }
  NotePeak(before + amount);
  return absl::OkStatus();
}

std::shared_ptr<Budget> ClientBudgets::Of(const std::string& client) {
  const MutexLock lock(mutex_);
  if (clients_.size() >= next_clean_up_) {
    std::erase_if(clients_, [](const auto& one) { return one.second.use_count() == 1; });
    next_clean_up_ = 2 * clients_.size() + 16;
  }
  std::shared_ptr<Budget>& budget = clients_[client];
  if (budget == nullptr) budget = std::make_shared<Budget>(of_client_, names_, all_, 1, leaves_room_);
  return budget;
}

}  // namespace longshort
