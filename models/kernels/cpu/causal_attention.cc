#include "models/kernels/cpu/causal_attention.h"

namespace longshort::cpu {
namespace avx512 {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}
namespace avx2 {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}
namespace baseline {
template <typename Element>
void Attend(const AttentionRun<Element>& run);
}

namespace {

enum class Level { kBaseline, kAvx2, kAvx512 };

Level BestLevel() {
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return Level::kAvx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? Level::kAvx2 : Level::kBaseline;
}

Level ChosenLevel() {
  static const Level level = BestLevel();
  return level;
}

}  // namespace

template <typename Element>
void Attend(const AttentionRun<Element>& run) {
  switch (ChosenLevel()) {
    case Level::kAvx512:
      return avx512::Attend(run);
    case Level::kAvx2:
      return avx2::Attend(run);
    case Level::kBaseline:
      return baseline::Attend(run);
  }
}

template void Attend(const AttentionRun<float>& run);
template void Attend(const AttentionRun<BFloat16>& run);

const char* InstructionSet() {
  switch (ChosenLevel()) {
    case Level::kAvx512:
      return "avx512";
    case Level::kAvx2:
      return "avx2";
    case Level::kBaseline:
      break;
  }
  return "baseline";
}

}  // namespace longshort::cpu
