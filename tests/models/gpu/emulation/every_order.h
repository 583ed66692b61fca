// The execution orders in which tests run a kernel on the emulator.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/models/gpu/emulation/block.h"

namespace longshort::models::cuda::emulated {

// Threads ascending, descending, shuffled, and warp by warp; copies late and at once.
inline std::vector<EmulationOptions> EveryOrder() {
  return {{.order = ThreadOrder::kAscending},
          {.order = ThreadOrder::kDescending, .copies_at_once = true},
          {.order = ThreadOrder::kShuffled, .seed = 1},
          {.order = ThreadOrder::kShuffled, .seed = 2, .copies_at_once = true},
          {.order = ThreadOrder::kWarpByWarp}};
}

inline std::string NameOf(const EmulationOptions& options) {
  constexpr const char* kNames[] = {"ascending", "descending", "shuffled", "warp by warp"};
  return absl::StrCat(kNames[static_cast<int>(options.order)], ", seed ", options.seed,
                      options.copies_at_once ? ", copies at once" : "");
}

}  // namespace longshort::models::cuda::emulated
