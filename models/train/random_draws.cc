#include "models/train/random_draws.h"

namespace longshort {
namespace {

uint64_t Mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;

}  // namespace

RandomDraws::RandomDraws(uint64_t seed, uint64_t stream)
    : state_(Mixed(Mixed(seed + kGoldenRatio) + (stream + 1) * kGoldenRatio)) {}

uint64_t RandomDraws::Next() {
  state_ += kGoldenRatio;
  return Mixed(state_);
}

double RandomDraws::Uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1p-53;
}

int64_t RandomDraws::Below(int64_t count) {
  return static_cast<int64_t>(((Next() >> 32) * static_cast<uint64_t>(count)) >> 32);
}

}  // namespace longshort
