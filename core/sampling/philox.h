// Philox4x32-10: random numbers as a function of a key and a counter (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). No state, so the number at a stream position never depends on how it was
// reached.
#pragma once

#include <array>
#include <cstdint>

namespace longshort {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Four random words, uniform and independent for different counters.
PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key);

// Uniform in [0, 1), with 53 random bits: the draw of completion `completion` at stream position `position`.
double UniformAt(uint64_t seed, uint64_t position, uint32_t completion);

}  // namespace longshort
