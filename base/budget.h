// A limit on the total of a resource, such as tokens or bytes, that all holders have together. A limit on the number of
// holders would not bound memory, because one of them may hold millions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace longshort {

// Thread-safe. Several owners may share a budget.
class Budget final {
 public:
  // Names for messages: the holders and the unit, for example "the requests in flight" and "prompt tokens".
  struct Names {
    std::string holders;
    std::string unit;
  };

  // A part of a budget. The destructor returns it. A default-constructed share is empty. Assignment
  // swaps the shares.
  class Share final {
   public:
    Share() = default;
    // Starts with an amount of 0.
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

    // Sets the amount that is really held, even if that exceeds the budget.
    void SetAmount(int64_t amount) {
      if (budget_ == nullptr) return;
      budget_->held_ += amount - amount_;
      amount_ = amount;
    }

    // Adds to the amount, even if that exceeds the budget.
    void Add(int64_t amount) { SetAmount(amount_ + amount); }

    // Increases the amount to `amount` if the budget has room for it, or if no other share holds anything.
    // Errors: RESOURCE_EXHAUSTED, as Take; the amount is then unchanged.
    absl::Status Grow(int64_t amount);

    // REQUIRES: the share is not empty.
    const Budget& budget() const { return *budget_; }

   private:
    friend class Budget;
    Share(std::shared_ptr<Budget> budget, int64_t amount) : budget_(std::move(budget)), amount_(amount) {}

    std::shared_ptr<Budget> budget_;
    int64_t amount_ = 0;
  };

  Budget(int64_t capacity, Names names) : capacity_(capacity), names_(std::move(names)) {}

  // Takes `amount` of the budget if it also has room for `more`, which will follow. If nothing is held, any amount is
  // accepted.
  // Errors: RESOURCE_EXHAUSTED naming the held amount. The status carries no Refusal: only the caller knows the queue.
  static absl::StatusOr<Share> Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more = 0);

  int64_t held() const { return held_; }
  int64_t capacity() const { return capacity_; }
  // The rest of the capacity; 0 if more than the capacity is held.
  int64_t left() const { return std::max<int64_t>(0, capacity_ - held_); }

 private:
  absl::Status Refuse(int64_t before, int64_t amount) const;

  const int64_t capacity_;
  const Names names_;
  std::atomic<int64_t> held_ = 0;
};

}  // namespace longshort
