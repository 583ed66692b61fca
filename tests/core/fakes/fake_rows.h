// What fake models keep in the rows of their pages: numbers for what was read.
#pragma once

#include <cstdint>

namespace longshort::core {

// In pages that nothing was written to yet.
inline constexpr uint64_t kRubbish = 0xDEADBEEF;

// The finaliser of splitmix64.
inline uint64_t Mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

inline int64_t FloorDivide(int64_t value, int64_t divisor) {
  return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
}

}  // namespace longshort::core
