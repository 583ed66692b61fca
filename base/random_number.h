// Random numbers for ids and seeds, not for secrets.
#pragma once

#include <cstdint>

#include "absl/random/random.h"

namespace longshort {

// One generator for each thread: a new one costs 130 ns, a number 3 ns.
inline uint64_t RandomNumber() {
  thread_local absl::BitGen generator;
  return generator();
}

}  // namespace longshort
