// How many prompt tokens all requests may hold together, from their submission to their end: a bound on memory that a
// bound on the number of requests is not, because one of them may have millions of tokens.
//
// Thread-safe; engines may share one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace longshort {

class TokenBudget final {
 public:
  // Some tokens of a budget, given back when it is destroyed. Empty when default-made or moved from.
  class Share final {
   public:
    Share() = default;
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), tokens_(other.tokens_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(tokens_, other.tokens_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->held_ -= tokens_;
    }

   private:
    friend class TokenBudget;
    Share(std::shared_ptr<TokenBudget> budget, int64_t tokens) : budget_(std::move(budget)), tokens_(tokens) {}

    std::shared_ptr<TokenBudget> budget_;
    int64_t tokens_ = 0;
  };

  explicit TokenBudget(int64_t capacity) : capacity_(capacity) {}

  // Takes `tokens` of the budget, if there is room for `more` that will follow too. What comes while nothing is held is
  // always taken, however long.
  // Errors: RESOURCE_EXHAUSTED saying how many are held; without a Refusal, because who takes knows what waits.
  static absl::StatusOr<Share> Take(const std::shared_ptr<TokenBudget>& budget, int64_t tokens, int64_t more = 0);

  int64_t held() const { return held_; }

 private:
  const int64_t capacity_;
  std::atomic<int64_t> held_ = 0;
};

}  // namespace longshort
