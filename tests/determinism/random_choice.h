// Random choices that are the same with every standard library, unlike std::uniform_int_distribution.
#pragma once

#include <cstdint>
#include <random>

namespace longshort {

using Random = std::mt19937_64;

// Returns a number in [0, end). REQUIRES: end > 0.
inline int64_t Below(Random& random, int64_t end) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
}
// In [first, last].
inline int64_t Between(Random& random, int64_t first, int64_t last) { return first + Below(random, last - first + 1); }
// In [0, 1).
inline double Fraction(Random& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }
inline bool Chance(Random& random, double probability) { return Fraction(random) < probability; }

}  // namespace longshort
