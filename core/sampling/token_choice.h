// The choice of a token from a row of logits, by passes over the row (core/sampling/row_passes.h). It takes the token
// that sorting the whole row would lead to.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/sampling/row_passes.h"
#include "core/sampling/sampler.h"

namespace longshort::core {

// Row numbers are float or double. A number of -inf stands for a token that may not be chosen. REQUIRES of all rows: at
// least one number is finite, and none is +inf or NaN.
//
// Thread: one at a time. Keeps its memory for the next row: about 16 bytes a token.
class TokenChoice {
 public:
  explicit TokenChoice(const RowPasses& passes = RowPasses::Best()) : passes_(passes) {}

  // The index of the largest number; the first one of several.
  template <typename Number>
  int64_t Likeliest(absl::Span<const Number> row);

  // Draws by temperature, top_k, top_p and min_p of the options; `tokens` is how many numbers are finite.
  // REQUIRES: temperature > 0.
  template <typename Number>
  int64_t Draw(absl::Span<const Number> row, int64_t tokens, const SamplingOptions& options, double uniform);

 private:
  template <typename Number>
  struct Largest {
    std::vector<Number> of_blocks;
    Number of_row = 0;
  };
  template <typename Number>
  const Largest<Number>& FindLargest(absl::Span<const Number> row);
  // The k-th largest number, and how many are at least as large. REQUIRES: 1 <= k < the number of finite ones.
  template <typename Number>
  std::pair<Number, int64_t> FindKthLargest(absl::Span<const Number> row, const Largest<Number>& largest, int64_t k);
  // Sets the weights of the last `count` numbers that equal `number` to 0.
  template <typename Number>
  void DropLast(absl::Span<const Number> row, Number number, int64_t count);
  // Keeps the fewest of the likeliest tokens whose weights reach top_p of the sum: sets the weights of some others to
  // 0, and returns the least weight of the kept ones. Sets the sums of blocks.
  template <typename Number>
  double KeepTopP(absl::Span<const Number> row, double top_p);
  // Moves two ends towards each other: the weights of at least `low` reach the target, and those of at least `high` do
  // not. Ends when at most `few` weights of every `stride`-th block are between them, or no number.
  void Narrow(double target, int64_t stride, int64_t few, HeavyWeights& low, HeavyWeights& high) const;
  // Tries two numbers between the ends, as ordinals. Returns whether the target is between them.
  bool Compare(double target, int64_t stride, int64_t less, int64_t more, HeavyWeights& low, HeavyWeights& high) const;
  // Draws among the weights of at least `least`, by ascending index. Calls prepare(block) before it reads a block's.
  template <typename Prepare>
  int64_t DrawByWeight(double least, double uniform, const Prepare& prepare);

  const RowPasses& passes_;
  Largest<float> float_largest_;
  Largest<double> double_largest_;
  std::vector<double> weights_;      // [blocks * kRowBlock]
  std::vector<double> sums_;         // [blocks], of the weights
  std::vector<int64_t> counts_;      // [blocks]
  std::vector<int64_t> candidates_;  // indices
};

}  // namespace longshort::core
