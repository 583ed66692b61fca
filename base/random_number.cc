#include "base/random_number.h"

#include <random>

namespace longshort {

uint64_t RandomNumber() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

}  // namespace longshort
