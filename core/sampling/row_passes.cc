#include "core/sampling/row_passes.h"

namespace longshort::core {

const RowPasses& RowPasses::Best() {
  static const RowPasses& best =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? avx512::kRowPasses
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? avx2::kRowPasses
                                                                              : baseline::kRowPasses;
  return best;
}

}  // namespace longshort::core
