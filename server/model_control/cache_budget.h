// What models may take of a machine's memory, or of a GPU's: a budget, of which each model has a share.
//
// Models are loaded by one thread, and destroyed by others: what there is room for stays so until it is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/budget.h"

namespace longshort::server {

// `bytes`: what the process may use; 0 if unknown (then nothing is refused).
std::shared_ptr<Budget> MemoryBudget(int64_t bytes);

// Whether the memory holds what is taken. Errors: RESOURCE_EXHAUSTED naming `model`, the last that was added, and the
// bytes of both.
absl::Status CheckModelFits(const Budget& memory, const std::string& model);

// Whether so many bytes more would be left for weights that are yet to be read. Errors: RESOURCE_EXHAUSTED naming both.
absl::Status CheckWeightsFit(const Budget& memory, int64_t weight_bytes);

// Takes `wanted` bytes more for a model's cache; 0 takes `usual`, or half of what is left, so that something is left
// for every further model. Returns the bytes, at least 1. Errors: RESOURCE_EXHAUSTED naming --cache-bytes and the most
// that would fit.
absl::StatusOr<int64_t> TakeForCache(Budget::Share& share, const std::string& model, int64_t wanted, int64_t usual);

}  // namespace longshort::server
