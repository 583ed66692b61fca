// A limit on the total of a resource, such as tokens or bytes, that all holders have together. A limit on the number of
// holders would not bound memory, because one of them may hold millions.
//
// Budgets form a tree: what a share takes from a budget, it also takes from the budgets above it. A budget of tokens
// may stand below one of bytes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

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
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), amount_(std::exchange(other.amount_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() { SetAmount(0); }

    // Sets the amount that is really held, even if that exceeds the budget.
    void SetAmount(int64_t amount) {
      if (budget_ == nullptr || amount == amount_) return;
      budget_->Add(amount - amount_);
      amount_ = amount;
    }

    // Adds to the amount, even if that exceeds the budget.
    void Add(int64_t amount) { SetAmount(amount_ + amount); }

    // Sets the amount to `amount`. It may be increased only if the budget has room.
    // Errors: RESOURCE_EXHAUSTED, as Take; the amount is then unchanged.
    absl::Status Grow(int64_t amount);

    int64_t amount() const { return amount_; }
    // REQUIRES: the share is not empty.
    const Budget& budget() const { return *budget_; }

   private:
    friend class Budget;
    Share(std::shared_ptr<Budget> budget, int64_t amount) : budget_(std::move(budget)), amount_(amount) {}

    std::shared_ptr<Budget> budget_;
    int64_t amount_ = 0;
  };

  // `parent`: the budget above; null for a root. One unit of this budget is `in_parent` units of the parent.
  // `leaves_room`: see ClientBudgets; then it has a parent.
  Budget(int64_t capacity, Names names, std::shared_ptr<Budget> parent = nullptr, int64_t in_parent = 1,
         bool leaves_room = false)
      : capacity_(capacity),
        names_(std::move(names)),
        parent_(std::move(parent)),
        in_parent_(in_parent),
        leaves_room_(leaves_room) {}

  // Takes `amount` of the budget if it also has room for `more`, which will follow.
  // Errors: RESOURCE_EXHAUSTED naming the held amount. The status carries no Refusal: only the caller knows the queue.
  static absl::StatusOr<Share> Take(const std::shared_ptr<Budget>& budget, int64_t amount, int64_t more = 0);

  int64_t held() const { return held_; }
  int64_t capacity() const { return capacity_; }
  // What may be held now: the capacity, or less if the budget leaves room.
  int64_t limit() const { return LimitAt(held_); }
  // The rest of the capacity; 0 if more than the capacity is held.
  int64_t left() const { return std::max<int64_t>(0, capacity_ - held_); }
  // The most that was held since the last call.
  int64_t TakePeak() { return peak_.exchange(held_); }

 private:
  void Add(int64_t amount);
  void NotePeak(int64_t held) {
    for (int64_t peak = peak_; held > peak && !peak_.compare_exchange_weak(peak, held);) {
    }
  }
  // Takes `amount` for a holder that has `own` already.
  absl::Status TryAdd(int64_t own, int64_t amount, int64_t more);

  // What may be held if `before` is held.
  int64_t LimitAt(int64_t before) const;

  const int64_t capacity_;
  const Names names_;
  const std::shared_ptr<Budget> parent_;
  const int64_t in_parent_;
  const bool leaves_room_;
  std::atomic<int64_t> held_ = 0;
  std::atomic<int64_t> peak_ = 0;
};

// Gives each client a budget of its own below one that all have together. With `leaves_room`, a client can take at most
// as much as it leaves to the others: the first one half of all, the next one half of the rest, and so on. So a few
// clients that take all they can leave room for one that takes little.
//
// Thread-safe.
class ClientBudgets final {
 public:
  // `of_client`: what one client may hold.
  ClientBudgets(std::shared_ptr<Budget> all, int64_t of_client, Budget::Names names, bool leaves_room = false)
      : all_(std::move(all)), of_client_(of_client), names_(std::move(names)), leaves_room_(leaves_room) {}
  // One client may hold half of all, and leaves room.
  ClientBudgets(const std::shared_ptr<Budget>& all, Budget::Names names)
      : ClientBudgets(all, all->capacity() / 2, std::move(names), /*leaves_room=*/true) {}

  // The budget of a client. It stays until a later call finds that no caller has a pointer to it, so that a client of
  // one call after the other does not make it each time.
  std::shared_ptr<Budget> Of(const std::string& client);
  const std::shared_ptr<Budget>& all() const { return all_; }

 private:
  const std::shared_ptr<Budget> all_;
  const int64_t of_client_;
  const Budget::Names names_;
  const bool leaves_room_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Budget>> clients_ ABSL_GUARDED_BY(mutex_);
  size_t next_clean_up_ ABSL_GUARDED_BY(mutex_) = 16;  // the number of clients at which those without a caller leave
};

}  // namespace longshort
