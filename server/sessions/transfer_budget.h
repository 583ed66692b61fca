// How many bytes of sessions may be on their way, in and out, at once: a bound on the memory that this takes.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/budget.h"

namespace longshort {

std::shared_ptr<Budget> TransferBudget(int64_t bytes);

// Takes `bytes` of that budget. Errors: RESOURCE_EXHAUSTED with a Refusal (core/schedule/refusal.h).
absl::StatusOr<Budget::Share> TakeForTransfer(const std::shared_ptr<Budget>& budget, int64_t bytes);

}  // namespace longshort
