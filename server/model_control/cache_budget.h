// How many bytes the cache of each model may take, decided when models are loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace longshort {

// Thread-safe: models are loaded by one thread and destroyed by another.
class CacheBudget {
 public:
  // `memory_bytes`: what the process may use; 0 if unknown (then nothing is refused).
  explicit CacheBudget(int64_t memory_bytes) : memory_bytes_(memory_bytes) {}

  // Takes bytes out of the budget that will be used whatever is cached: weights, prompts, messages, images.
  void SetAside(int64_t bytes);

  // Whether the memory holds what is set aside and reserved. Errors: RESOURCE_EXHAUSTED naming `model`, the last that
  // was added, and the bytes of both.
  absl::Status Check(const std::string& model) const;

  // Whether so many bytes more would be left for weights that are yet to be read. Errors: RESOURCE_EXHAUSTED naming
  // both.
  absl::Status CheckRoom(int64_t weight_bytes) const;

  // Reserves `wanted` bytes for a model's cache; 0 takes `usual`, or half of what is left beside what is set aside and
  // reserved, so that something is left for every further model. Returns the bytes, at least 1. Errors:
  // RESOURCE_EXHAUSTED naming --cache-bytes and the most that would fit.
  absl::StatusOr<int64_t> Reserve(const std::string& model, int64_t wanted, int64_t usual);

  // What was set aside and reserved for something that is gone.
  void GiveBack(int64_t set_aside_bytes, int64_t reserved_bytes);

 private:
  const int64_t memory_bytes_;  // 0 if unknown
  mutable std::mutex mutex_;
  int64_t set_aside_bytes_ = 0;  // guarded by mutex_
  int64_t reserved_bytes_ = 0;   // guarded by mutex_
};

// What one model takes of a budget; given back when this is destroyed.
class BudgetShare {
 public:
  explicit BudgetShare(std::shared_ptr<CacheBudget> budget) : budget_(std::move(budget)) {}
  BudgetShare(const BudgetShare&) = delete;
  BudgetShare& operator=(const BudgetShare&) = delete;
  ~BudgetShare() { budget_->GiveBack(set_aside_bytes_, reserved_bytes_); }

  // As CacheBudget's.
  void SetAside(int64_t bytes);
  absl::StatusOr<int64_t> Reserve(const std::string& model, int64_t wanted, int64_t usual);
  // Keeps what several models need only once; given back behind the last of them.
  void Keep(std::shared_ptr<const BudgetShare> common) { common_ = std::move(common); }

 private:
  const std::shared_ptr<CacheBudget> budget_;
  std::shared_ptr<const BudgetShare> common_;
  int64_t set_aside_bytes_ = 0;
  int64_t reserved_bytes_ = 0;
};

}  // namespace longshort
