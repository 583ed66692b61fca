// Random numbers that depend on a seed and a stream's number only, the same on every machine.
#pragma once

#include <cstdint>

namespace longshort {

// The splitmix64 sequence that (seed, stream) starts; streams are independent for all purposes here.
class RandomDraws final {
 public:
  RandomDraws(uint64_t seed, uint64_t stream);

  uint64_t Next();
  // In [low, high), with 53 random bits.
  double Uniform(double low, double high);
  // In [0, count). REQUIRES: 0 < count < 2^31.
  int64_t Below(int64_t count);

 private:
  uint64_t state_;
};

}  // namespace longshort
