// The passes of row_passes.h. Compiled for each instruction set, whose name LONGSHORT_INSTRUCTION_SET is. Calls no
// inline function of another header: the linker would keep one instance of it, perhaps this instruction set's, for all
// callers.
#include <cstdint>

#include "core/sampling/row_passes.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

// NOLINTBEGIN(misc-definitions-in-headers)
namespace longshort::core::LONGSHORT_INSTRUCTION_SET {
namespace {

// Eight numbers. The compiler divides them among as many registers as they need.
constexpr int64_t kWidth = 8;
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));
using Doubles = double __attribute__((vector_size(kWidth * sizeof(double))));
using Ints = int64_t __attribute__((vector_size(kWidth * sizeof(int64_t))));

// As many numbers as fit in 64 bytes.
template <typename Number>
struct Registers {
  using type = Doubles;
};
template <>
struct Registers<float> {
  using type = float __attribute__((vector_size(sizeof(Doubles))));
};

inline void Load(const float* from, Doubles& to) {
#ifdef __AVX512F__
  to = _mm512_cvtps_pd(_mm256_loadu_ps(from));  // GCC 12 takes seven instructions for __builtin_convertvector
#else
  Floats floats;
  __builtin_memcpy(&floats, from, sizeof(floats));
  to = __builtin_convertvector(floats, Doubles);
#endif
}
inline void Load(const double* from, Doubles& to) { __builtin_memcpy(&to, from, sizeof(to)); }

// One number from all lanes, by halves: join(a, b) is called for vectors of 8, 4, 2 lanes, and 1.
template <typename Vector, typename Join>
auto Reduce(const Vector& x, const Join& join) {
  if constexpr (sizeof(x) == 16 * sizeof(x[0])) {
    return Reduce(join(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),
                       __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)),
                  join);
  } else if constexpr (sizeof(x) == 8 * sizeof(x[0])) {
    return Reduce(join(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7)), join);
  } else {
    const auto half = join(__builtin_shufflevector(x, x, 0, 1), __builtin_shufflevector(x, x, 2, 3));
    return join(half[0], half[1]);
  }
}
template <typename Vector>
auto Sum(const Vector& x) {
  return Reduce(x, [](const auto& a, const auto& b) { return a + b; });
}

// Calls pass(block, numbers) for each block. After the last number, the last block has -inf.
template <typename Number, typename Pass>
void ForBlocks(const Number* row, int64_t size, const Pass& pass) {
  const int64_t whole = size / kRowBlock;
  for (int64_t block = 0; block < whole; ++block) pass(block, row + block * kRowBlock);
  const int64_t rest = size - whole * kRowBlock;
  if (rest == 0) return;
  Number last[kRowBlock];
  for (int64_t i = 0; i < kRowBlock; ++i) {
    last[i] = i < rest ? row[whole * kRowBlock + i] : -static_cast<Number>(__builtin_inf());
  }
  pass(whole, last);
}

// 2^y for y in [-1021.5, 0]: 2^k * 2^r, where r is at most 1/2 from 0. The polynomial is the one through (2^r - 1) / r
// at Chebyshev's nodes; 2^0 is 1.
inline void PowerOfTwo(Doubles& y) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to a whole number in the low bits
  const Doubles rounded = y + kRound;
  const Doubles r = y - (rounded - kRound);
  // In pairs (Estrin's scheme), because a processor waits for each product of Horner's.
  const Doubles r2 = r * r, r4 = r2 * r2;
  const Doubles terms01 = r * 0.24022650695910075 + 0.6931471805599462;
  const Doubles terms23 = r * 0.009618129107618665 + 0.05550410866465167;
  const Doubles terms45 = r * 0.00015403530424776529 + 0.0013333558200794592;
  const Doubles terms67 = r * 1.3215451633221434e-06 + 1.5252672924850737e-05;
  const Doubles terms89 = r * 7.070977866508138e-09 + 1.0205905413765595e-07;
  const Doubles high = terms89 * r4 + (terms67 * r2 + terms45);
  const Doubles sum = (high * r4 + (terms23 * r2 + terms01)) * r + 1.0;
  y = reinterpret_cast<Doubles>(reinterpret_cast<Ints>(sum) + (reinterpret_cast<Ints>(rounded) << 52));
}

bool AllFinite(const float* row, int64_t size) {
  constexpr int32_t kExponent = 0x7f800000;
  int32_t bad = 0;
  for (int64_t i = 0; i < size; ++i) {
    int32_t bits = 0;
    __builtin_memcpy(&bits, row + i, sizeof(bits));
    bad |= (bits & kExponent) == kExponent ? 1 : 0;
  }
  return bad == 0;
}

template <typename Number>
void FindLargest(const Number* row, int64_t size, Number* largest) {
  using Vector = typename Registers<Number>::type;
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(Number);
  ForBlocks(row, size, [largest](int64_t block, const Number* numbers) {
    Vector lanes, next;
    __builtin_memcpy(&lanes, numbers, sizeof(lanes));
    for (int64_t i = kLanes; i < kRowBlock; i += kLanes) {
      __builtin_memcpy(&next, numbers + i, sizeof(next));
      lanes = lanes > next ? lanes : next;
    }
    largest[block] = Reduce(lanes, [](const auto& a, const auto& b) { return a > b ? a : b; });
  });
}

template <typename Number>
int64_t CountAtLeast(const Number* row, int64_t size, Number least) {
  using Vector = typename Registers<Number>::type;
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(Number);
  decltype(Vector{} >= Vector{}) counts = {};  // minus 1 for each
  ForBlocks(row, size, [&](int64_t, const Number* numbers) {
    Vector lanes;
    for (int64_t i = 0; i < kRowBlock; i += kLanes) {
      __builtin_memcpy(&lanes, numbers + i, sizeof(lanes));
      counts += lanes >= least;
    }
  });
  int64_t count = 0;
  for (int64_t i = 0; i < kLanes; ++i) count -= counts[i];
  return count;
}

// A bit for each of eight numbers: whether it is at least `least`.
inline uint64_t BitsAtLeast(const float* numbers, float least) {
#ifdef __AVX2__
  return _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(numbers), _mm256_set1_ps(least), _CMP_GE_OQ));
#else
  uint64_t bits = 0;
  for (int64_t i = 0; i < kWidth; ++i) bits |= static_cast<uint64_t>(numbers[i] >= least) << i;
  return bits;
#endif
}
inline uint64_t BitsAtLeast(const double* numbers, double least) {
  uint64_t bits = 0;
#ifdef __AVX2__
  for (int64_t i = 0; i < kWidth; i += 4) {
    const __m256d is_large = _mm256_cmp_pd(_mm256_loadu_pd(numbers + i), _mm256_set1_pd(least), _CMP_GE_OQ);
    bits |= static_cast<uint64_t>(_mm256_movemask_pd(is_large)) << i;
  }
#else
  for (int64_t i = 0; i < kWidth; ++i) bits |= static_cast<uint64_t>(numbers[i] >= least) << i;
#endif
  return bits;
}

template <typename Number>
int64_t FindAtLeast(const Number* row, int64_t size, const Number* largest, Number least, int32_t* indices) {
  int64_t found = 0;
  ForBlocks(row, size, [&](int64_t block, const Number* numbers) {
    if (largest[block] < least) return;
    uint64_t bits = 0;
    for (int64_t i = 0; i < kRowBlock; i += kWidth) bits |= BitsAtLeast(numbers + i, least) << i;
    for (; bits != 0; bits &= bits - 1) {
      indices[found++] = static_cast<int32_t>(block * kRowBlock + __builtin_ctzll(bits));
    }
  });
  return found;
}

template <typename Number>
void ComputeWeights(const Number* row, int64_t size, const Number* largest, const WeightsOfRow& options,
                    double* weights, double* sums) {
  const double of_row = options.largest, cut = options.cut, scale = options.scale * 1.4426950408889634;  // log2(e)
  ForBlocks(row, size, [&](int64_t block, const Number* numbers) {
    Doubles sum = {};
    const bool all_below = largest[block] < cut;
    for (int64_t i = 0; i < kRowBlock; i += kWidth) {
      Doubles x = {};
      if (!all_below) {
        Load(numbers + i, x);
        const Ints kept = x >= cut;
        x = kept ? (x - of_row) * scale : Doubles{};
        PowerOfTwo(x);
        x = kept ? x : Doubles{};
        sum += x;
      }
      if (weights != nullptr) __builtin_memcpy(weights + block * kRowBlock + i, &x, sizeof(x));
    }
    sums[block] = Sum(sum);
  });
}

void AddUp(const double* weights, const double* sums, int64_t blocks, int64_t stride, HeavyWeights* a,
           HeavyWeights* b) {
  constexpr int64_t kSums = 4;  // of each, so that additions do not wait for each other
  Doubles sums_a[kSums] = {}, sums_b[kSums] = {};
  const double least_a = a->least, least_b = b->least;
  for (int64_t block = 0; block < blocks; block += stride) {
    if (sums[block] < least_a) continue;
    for (int64_t i = 0; i < kRowBlock; i += kWidth) {
      Doubles x;
      Load(weights + block * kRowBlock + i, x);
      sums_a[i / kWidth % kSums] += x >= least_a ? x : Doubles{};
      sums_b[i / kWidth % kSums] += x >= least_b ? x : Doubles{};
    }
  }
  a->sum = Sum((sums_a[0] + sums_a[1]) + (sums_a[2] + sums_a[3]));
  b->sum = Sum((sums_b[0] + sums_b[1]) + (sums_b[2] + sums_b[3]));
}

void Split(const double* weights, int64_t blocks, double low, double high, double* sums, int64_t* between) {
  for (int64_t block = 0; block < blocks; ++block) {
    Doubles sum = {};
    Ints count = {};
    const bool all_below = sums[block] < low;
    sums[block] = 0;
    between[block] = 0;
    if (all_below) continue;
    for (int64_t i = 0; i < kRowBlock; i += kWidth) {
      Doubles x;
      Load(weights + block * kRowBlock + i, x);
      const Ints is_high = x >= high;
      sum += is_high ? x : Doubles{};
      count += is_high - (x >= low);
    }
    sums[block] = Sum(sum);
    between[block] = Sum(count);
  }
}

template <typename Number>
constexpr NumberPasses<Number> kNumberPasses = {FindLargest<Number>, CountAtLeast<Number>, FindAtLeast<Number>,
                                                ComputeWeights<Number>};

}  // namespace

extern const RowPasses kRowPasses = {AllFinite, kNumberPasses<float>, kNumberPasses<double>, AddUp, Split};

}  // namespace longshort::core::LONGSHORT_INSTRUCTION_SET
// NOLINTEND(misc-definitions-in-headers)
