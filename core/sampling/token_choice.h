// The choice of a token from a row of logits, by passes over the row (core/sampling/row_passes.h). It takes the token
// that sorting the whole row would lead to.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "core/sampling/row_passes.h"
#include "core/sampling/sampler.h"

namespace longshort::core {

// Row numbers are float or double. A number of -inf stands for a token that may not be chosen. REQUIRES of all rows: at
// least one number is finite, and none is +inf or NaN.
//
// Thread: one at a time. Keeps its memory for the next row: about 20 bytes a token.
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
  struct Memory {
    std::vector<Number> largest_of_blocks;
    Number largest = 0;
    std::vector<Number> kept;  // by KeepTopK
  };
  template <typename Number>
  Memory<Number>& memory() {
    if constexpr (std::is_same_v<Number, float>) {
      return floats_;
    } else {
      return doubles_;
    }
  }
  // Sets the largest numbers.
  template <typename Number>
  const Memory<Number>& FindLargest(absl::Span<const Number> row);
  // Returns the k largest numbers, by ascending index, which it sets kept_tokens_ to; the first ones of several equal
  // numbers. REQUIRES: 1 <= k < `tokens`, as in Draw.
  template <typename Number>
  absl::Span<const Number> KeepTopK(absl::Span<const Number> row, int64_t tokens, int64_t k);
  // Numbers around the k-th largest one: at least k numbers are as large as `low`, and fewer as `high`.
  template <typename Number>
  struct EndsOfTopK {
    Number low;
    Number high = std::numeric_limits<Number>::infinity();
    int64_t above_high = 0;  // how many numbers are as large as `high`
  };
  // Finds ends with few numbers between them, or none but equal ones. REQUIRES: FindLargest was called.
  template <typename Number>
  EndsOfTopK<Number> FindEnds(absl::Span<const Number> row, int64_t tokens, int64_t k);
  // As Draw, without top_k.
  template <typename Number>
  int64_t DrawOfAll(absl::Span<const Number> row, const SamplingOptions& options, double uniform);
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
  Memory<float> floats_;
  Memory<double> doubles_;
  std::vector<int32_t> kept_tokens_;  // indices
  std::vector<double> weights_;       // [blocks * kRowBlock]
  std::vector<double> sums_;          // [blocks], of the weights
  std::vector<int64_t> counts_;       // [blocks]
  std::vector<int64_t> candidates_;   // indices
};

}  // namespace longshort::core
