// How many bytes of sessions may be on their way, in and out, at once: a bound on the memory that this takes.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace longshort {

class TransferBudget final {
 public:
  // Some bytes of a budget, given back when it is destroyed. Empty when default-made or moved from.
  class Share final {
   public:
    Share() = default;
    Share(Share&& other) noexcept : budget_(std::move(other.budget_)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->held_ -= bytes_;
    }

    // What it really takes: gives back the rest, or holds more, if that exceeds the budget, too.
    void SetBytes(int64_t bytes) {
      if (budget_ == nullptr) return;
      budget_->held_ += bytes - bytes_;
      bytes_ = bytes;
    }

   private:
    friend class TransferBudget;
    Share(std::shared_ptr<TransferBudget> budget, int64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}

    std::shared_ptr<TransferBudget> budget_;
    int64_t bytes_ = 0;
  };

  explicit TransferBudget(int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // Takes `bytes` of the budget. What comes while nothing is held is always taken, however large.
  // Errors: RESOURCE_EXHAUSTED saying how many are held.
  static absl::StatusOr<Share> Take(const std::shared_ptr<TransferBudget>& budget, int64_t bytes);

  int64_t held_bytes() const { return held_; }

 private:
  const int64_t capacity_bytes_;
  std::atomic<int64_t> held_ = 0;
};

}  // namespace longshort
