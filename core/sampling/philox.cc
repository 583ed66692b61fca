#include "core/sampling/philox.h"

namespace longshort {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

uint32_t High(uint64_t product) { return static_cast<uint32_t>(product >> 32); }
uint32_t Low(uint64_t product) { return static_cast<uint32_t>(product); }

}  // namespace

PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1), High(product0) ^ counter[3] ^ key[1],
               Low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double UniformAt(uint64_t seed, uint64_t position, uint32_t completion) {
  const PhiloxCounter words = Philox({Low(position), High(position), completion, 0}, {Low(seed), High(seed)});
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace longshort
