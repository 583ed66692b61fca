// Random numbers for ids and seeds, not for secrets.
#pragma once

#include <cstdint>

#include "absl/random/random.h"
#include "absl/time/time.h"

namespace longshort {

// Each thread has its own generator. Creating one takes 130 ns, drawing a number 3 ns.
inline uint64_t RandomNumber() {
  thread_local absl::BitGen generator;
  return generator();
}

// A pause before another attempt: half of `pause` at least, so that programs that failed together do not retry
// together.
inline absl::Duration WithJitter(absl::Duration pause) {
  constexpr uint64_t kSteps = 1024;
  return pause * (0.5 + 0.5 * static_cast<double>(RandomNumber() % kSteps) / kSteps);
}

}  // namespace longshort
