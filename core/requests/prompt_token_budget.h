// How many prompt tokens the requests of one or several engines may hold, from their submission to their end.
#pragma once

#include <cstdint>
#include <memory>

#include "base/budget.h"

namespace longshort {

inline std::shared_ptr<Budget> PromptTokenBudget(int64_t tokens) {
  return std::make_shared<Budget>(tokens, Budget::Names{.holders = "the requests in flight", .unit = "prompt tokens"});
}

}  // namespace longshort
