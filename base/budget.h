// A bound on what all that is in flight may hold together: tokens, bytes. A bound on the number of holders is no bound
// on memory, because one of them may hold millions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace longshort {

// Thread-safe; several owners may share one.
class Budget final {
 public:
  // For messages: who holds, and what: "the requests in flight", "prompt tokens".
  struct Names {
    std::string holders;
    std::string unit;
  };

  // A part of a budget, given back when it is destroyed. Empty when default-made or moved from.
  class Share final {
   public:
    Share() = default;
    // Holds nothing yet.
    explicit Share(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), amount_(other.amount_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->held_ -= amount_;
    }

    // What is really held: gives back the rest, or holds more, even if that exceeds the budget.
    void SetAmount(int64_t amount) {
      if (budget_ == nullptr) return;
      budget_->held_ += amount - amount_;
      amount_ = amount;
    }

    // Holds so much more, even if that exceeds the budget.
    void Add(int64_t amount) { SetAmount(amount_ + amount); }

    // Holds so much, which is more than before, if there is room for it or nobody else holds anything.
    // Errors: RESOURCE_EXHAUSTED, as Take; then it holds what it held.
    absl::Status Grow(int64_t amount);

    // REQUIRES: it is not empty.
    const Budget& budget() const { return *budget_; }

   private:
    friend class Budget;
    Share(std::shared_ptr<Budget> budget, int64_t amount) : budget_(std::move(budget)), amount_(amount) {}

    std::shared_ptr<Budget> budget_;
    int64_t amount_ = 0;
  };

  Budget(int64_t capacity, Names names) : capacity_(capacity), names_(std::move(names)) {}

  // Takes `amount` of the budget, if there is room for `more` that will follow too. What comes while nothing is held is
  // always taken, however much. What is refused holds nothing.
  // Errors: RESOURCE_EXHAUSTED saying how much is held; without a Refusal, because who takes knows what waits.
  static absl::StatusOr<Share> Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more = 0);

  int64_t held() const { return held_; }
  int64_t capacity() const { return capacity_; }
  // Of the capacity; 0 if more is held.
  int64_t left() const { return std::max<int64_t>(0, capacity_ - held_); }

 private:
  absl::Status Refuse(int64_t before, int64_t amount) const;

  const int64_t capacity_;
  const Names names_;
  std::atomic<int64_t> held_ = 0;
};

}  // namespace longshort
