// Passes over a row of logits or of weights. They use the processor's vectors, so that one over 32,000 numbers takes a
// few microseconds. The sampler makes several passes instead of sorting the row.
//
// A pass counts its row in blocks of kRowBlock numbers. The last block may be shorter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

namespace longshort::core {

inline constexpr int64_t kRowBlock = 64;
constexpr int64_t RowBlocks(int64_t size) { return (size + kRowBlock - 1) / kRowBlock; }

// Less than this is no exponent of a weight: its power is no normal number.
inline constexpr double kLeastExponent = -708;

// The weight of a number x is exp((x - largest) * scale) if x >= cut, with a relative error of at most 1e-15 plus
// 2e-16 for each unit of the exponent; otherwise 0. Equal numbers have equal weights, and the largest one has 1.
// REQUIRES: (x - largest) * scale is in [kLeastExponent, 0] if x >= cut.
struct WeightsOfRow {
  double largest = 0;
  double scale = 1;
  double cut = 0;
};

// The sum of the weights of at least `least`.
struct HeavyWeights {
  double least = 0;
  double sum = 0;
};

// Passes over a row of `size` numbers.
template <typename Number>
struct NumberPasses {
  // Writes the largest number of each block, [blocks].
  void (*find_largest)(const Number* row, int64_t size, Number* largest);
  int64_t (*count_at_least)(const Number* row, int64_t size, Number least);
  // Writes the indices of the numbers of at least `least`, and returns how many. `largest`: from find_largest.
  // REQUIRES: least > -inf.
  int64_t (*find_at_least)(const Number* row, int64_t size, const Number* largest, Number least, int32_t* indices);
  // Writes each block's sum of weights, [blocks], and the weights, [blocks * kRowBlock] with zeros after the last one,
  // unless `weights` is null.
  // `largest`: from find_largest.
  void (*compute_weights)(const Number* row, int64_t size, const Number* largest, const WeightsOfRow& options,
                          double* weights, double* sums);
};

// The passes for one instruction set. Any thread may use them.
struct RowPasses {
  bool (*all_finite)(const float* row, int64_t size);
  NumberPasses<float> floats;
  NumberPasses<double> doubles;
  // `weights`, [blocks * kRowBlock], and `sums`, [blocks]: from compute_weights. Sets the sum of both, of every
  // `stride`-th block. REQUIRES: a->least <= b->least.
  void (*add_up)(const double* weights, const double* sums, int64_t blocks, int64_t stride, HeavyWeights* a,
                 HeavyWeights* b);
  // Reduces each block's sum to the weights of at least `high`, and writes how many others are at least `low`.
  void (*split)(const double* weights, int64_t blocks, double low, double high, double* sums, int64_t* between);

  template <typename Number>
  const NumberPasses<Number>& Of() const {
    if constexpr (std::is_same_v<Number, float>) {
      return floats;
    } else {
      return doubles;
    }
  }

  // For this processor's instruction set.
  static const RowPasses& Best();
};

// A lower bound of the k-th largest number of a row, from the largest number of each block. Few numbers are above it.
template <typename Number>
Number LowerBoundOfKthLargest(std::vector<Number> of_blocks, int64_t k) {
  if (k > static_cast<int64_t>(of_blocks.size())) return -std::numeric_limits<Number>::infinity();
  std::nth_element(of_blocks.begin(), of_blocks.begin() + (k - 1), of_blocks.end(), std::greater<Number>());
  return of_blocks[k - 1];
}

// For each instruction set (row_passes_body.h).
namespace baseline {
extern const RowPasses kRowPasses;
}
namespace avx2 {
extern const RowPasses kRowPasses;
}
namespace avx512 {
extern const RowPasses kRowPasses;
}

}  // namespace longshort::core
