// Budgets for the memory of the machine or of a GPU, of which each model has a share.
//
// One thread loads models, and others destroy them. So memory that is free stays free until the loading thread takes
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"

namespace longshort::server {

// `bytes`: memory that the process may use; 0 if unknown (then the budget has no limit).
std::shared_ptr<Budget> MemoryBudget(int64_t bytes);

// Checks that the shares do not exceed the memory. Errors: RESOURCE_EXHAUSTED naming `model`, the last one added, and
// both sizes.
absl::Status CheckModelFits(const Budget& memory, const std::string& model);

// Checks that `weight_bytes` are left, before weights are read. Errors: RESOURCE_EXHAUSTED naming both sizes.
absl::Status CheckWeightsFit(const Budget& memory, int64_t weight_bytes);

// The bytes that a model's cache should have (0: the default), and what set them, for messages.
struct CacheWish {
  int64_t bytes = 0;
  std::string source = "--cache-bytes";
};
// Takes `wanted` bytes for a model's cache. The default takes `usual`, or half of what is left if that is less, so that
// other models find some. Returns the bytes taken, at least 1. Errors: RESOURCE_EXHAUSTED naming the source and the
// maximum that fits.
absl::StatusOr<int64_t> TakeForCache(Budget::Share& share, const std::string& model, const CacheWish& wanted,
                                     int64_t usual);

}  // namespace longshort::server
