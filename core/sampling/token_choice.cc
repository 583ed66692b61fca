#include "core/sampling/token_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

namespace longshort::core {
namespace {

// So few candidates are sorted.
constexpr int64_t kFewCandidates = 96;
// A sample of a row has every such block.
constexpr int64_t kSampleStride = 16;

// Floating-point numbers as integers in the same order.
template <typename Number>
using Ordinal = std::conditional_t<std::is_same_v<Number, float>, int32_t, int64_t>;
template <typename Number>
Ordinal<Number> ToOrdinal(Number number) {
  Ordinal<Number> bits;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits < 0 ? std::numeric_limits<Ordinal<Number>>::min() - bits : bits;
}
template <typename Number>
Number FromOrdinal(Ordinal<Number> ordinal) {
  const Ordinal<Number> bits = ordinal < 0 ? std::numeric_limits<Ordinal<Number>>::min() - ordinal : ordinal;
  Number number;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

// Two numbers that are probably below and above the k-th largest one of the row, from a sample. None for a small row.
template <typename Number>
std::vector<Number> NumbersAroundKthLargest(absl::Span<const Number> row, int64_t k) {
  constexpr int64_t kSample = 1024;
  const int64_t stride = static_cast<int64_t>(row.size()) / kSample;
  if (stride < 2) return {};
  std::array<Number, kSample> sample;
  for (int64_t i = 0; i < kSample; ++i) sample[i] = row[i * stride];
  const int64_t rank = k / stride;
  const auto margin = static_cast<int64_t>(3 * std::sqrt(static_cast<double>(rank)));  // three standard deviations
  const auto below = sample.begin() + std::min(rank + margin, kSample - 1);
  const auto above = sample.begin() + std::max<int64_t>(rank - margin, 0);
  std::nth_element(sample.begin(), below, sample.end(), std::greater<Number>());
  std::nth_element(sample.begin(), above, below, std::greater<Number>());
  return {*below, *above};
}

}  // namespace

template <typename Number>
const TokenChoice::Memory<Number>& TokenChoice::FindLargest(absl::Span<const Number> row) {
  Memory<Number>& found = memory<Number>();
  std::vector<Number>& of_blocks = found.largest_of_blocks;
  const auto size = static_cast<int64_t>(row.size());
  of_blocks.resize(RowBlocks(size));
  passes_.Of<Number>().find_largest(row.data(), size, of_blocks.data());
  found.largest = *std::max_element(of_blocks.begin(), of_blocks.end());
  return found;
}

template <typename Number>
int64_t TokenChoice::Likeliest(absl::Span<const Number> row) {
  const Memory<Number>& found = FindLargest(row);
  const auto block = std::find(found.largest_of_blocks.begin(), found.largest_of_blocks.end(), found.largest);
  const auto begin = row.begin() + (block - found.largest_of_blocks.begin()) * kRowBlock;
  return std::find(begin, row.end(), found.largest) - row.begin();
}

template <typename Prepare>
int64_t TokenChoice::DrawByWeight(double least, double uniform, const Prepare& prepare) {
  double rest = uniform * std::accumulate(sums_.begin(), sums_.end(), 0.0);
  // Rounding may leave some of `rest` after the last token; then that one is drawn.
  int64_t last_block = static_cast<int64_t>(sums_.size()) - 1;
  while (sums_[last_block] <= 0) --last_block;
  int64_t block = 0, last = -1;
  while (block < last_block && rest >= sums_[block]) rest -= sums_[block++];
  for (; block <= last_block; ++block) {
    if (sums_[block] <= 0) continue;
    prepare(block);
    for (int64_t i = block * kRowBlock; i < (block + 1) * kRowBlock; ++i) {
      if (weights_[i] < least) continue;
      last = i;
      rest -= weights_[i];
      if (rest < 0) return i;
    }
  }
  return last;
}

template <typename Number>
int64_t TokenChoice::Draw(absl::Span<const Number> row, int64_t tokens, const SamplingOptions& options,
                          double uniform) {
  if (options.top_k <= 0 || options.top_k >= tokens) return DrawOfAll(row, options, uniform);
  const absl::Span<const Number> kept = KeepTopK(row, tokens, options.top_k);
  return kept_tokens_[DrawOfAll(kept, options, uniform)];
}

template <typename Number>
int64_t TokenChoice::DrawOfAll(absl::Span<const Number> row, const SamplingOptions& options, double uniform) {
  const auto size = static_cast<int64_t>(row.size());
  const Memory<Number>& found = FindLargest(row);
  WeightsOfRow weights = {.largest = static_cast<double>(found.largest),
                          .scale = std::min(1 / options.temperature, 1e300)};
  weights.cut = std::max(weights.largest + kLeastExponent / weights.scale, std::numeric_limits<double>::lowest());
  // Otherwise only the weights of the block with the drawn token are needed.
  const bool needs_weights = options.top_p < 1 || options.min_p > 0;
  weights_.resize(RowBlocks(size) * kRowBlock);
  sums_.resize(RowBlocks(size));
  counts_.resize(RowBlocks(size));
  passes_.Of<Number>().compute_weights(row.data(), size, found.largest_of_blocks.data(), weights,
                                       needs_weights ? weights_.data() : nullptr, sums_.data());
  double least = std::numeric_limits<double>::min();
  if (!needs_weights)
    return DrawByWeight(least, uniform, [&](int64_t block) {
      const absl::Span<const Number> numbers = row.subspan(block * kRowBlock, kRowBlock);
      double sum;
      passes_.Of<Number>().compute_weights(numbers.data(), numbers.size(), &found.largest_of_blocks[block], weights,
                                           &weights_[block * kRowBlock], &sum);
    });
  if (options.top_p < 1) least = KeepTopP(row, options.top_p);
  if (options.min_p > least) {
    least = options.min_p;
    passes_.split(weights_.data(), RowBlocks(size), least, least, sums_.data(), counts_.data());
  }
  return DrawByWeight(least, uniform, [](int64_t) {});
}

template <typename Number>
absl::Span<const Number> TokenChoice::KeepTopK(absl::Span<const Number> row, int64_t tokens, int64_t k) {
  FindLargest(row);
  auto& [of_blocks, largest, kept] = memory<Number>();
  const auto size = static_cast<int64_t>(row.size());
  EndsOfTopK<Number> ends;
  if (k > RowBlocks(size)) {
    ends = FindEnds(row, tokens, k);
  } else {  // the tokens of a block may all be ones that may not be chosen
    ends.low = std::max(LowerBoundOfKthLargest(of_blocks, k), std::numeric_limits<Number>::lowest());
  }
  kept_tokens_.resize(std::max(kept_tokens_.size(), row.size()));
  int32_t* const found = kept_tokens_.data();
  const int64_t count = passes_.Of<Number>().find_at_least(row.data(), size, of_blocks.data(), ends.low, found);
  kept.clear();
  for (int64_t i = 0; i < count; ++i) {
    if (row[found[i]] < ends.high) kept.push_back(row[found[i]]);
  }
  const auto rank = kept.begin() + (k - ends.above_high - 1);
  std::nth_element(kept.begin(), rank, kept.end(), std::greater<Number>());
  const Number kth = *rank;
  int64_t equal = std::count(kept.begin(), rank + 1, kth);  // that are kept
  kept.clear();
  for (int64_t i = 0; i < count; ++i) {
    const Number number = row[found[i]];
    if (number < kth || (number == kth && equal-- <= 0)) continue;
    found[kept.size()] = found[i];
    kept.push_back(number);
  }
  return kept;
}

template <typename Number>
TokenChoice::EndsOfTopK<Number> TokenChoice::FindEnds(absl::Span<const Number> row, int64_t tokens, int64_t k) {
  struct End {
    Number number;
    int64_t count;
  };
  const auto end_at = [&](Number number) {
    return End{.number = number,
               .count = passes_.Of<Number>().count_at_least(row.data(), static_cast<int64_t>(row.size()), number)};
  };
  End low = {.number = std::numeric_limits<Number>::lowest(), .count = tokens};
  End high = {.number = FromOrdinal<Number>(ToOrdinal(memory<Number>().largest) + 1), .count = 0};
  for (const Number number : NumbersAroundKthLargest(row, k)) {
    if (low.number < number && number < high.number) {
      const End end = end_at(number);
      (end.count >= k ? low : high) = end;
    }
  }
  for (int pass = 1; low.count - high.count > kFewCandidates; ++pass) {
    // Rounded up. The ordinals of two such numbers may be further apart than their type can say.
    const Number middle = FromOrdinal<Number>(std::midpoint(ToOrdinal(high.number), ToOrdinal(low.number)));
    if (middle == high.number) break;
    // A line between the ends says where a few more than k numbers are as large, or a few less: the end that has more
    // to go moves. Each third pass halves the distance, whatever the numbers are.
    const int64_t few = std::min<int64_t>(low.count - high.count, kFewCandidates) / 4;
    const int64_t aim = low.count - k > k - high.count ? k + few : k - few;
    const Number part = static_cast<Number>(low.count - aim) / static_cast<Number>(low.count - high.count);
    const Number guess = low.number + part * (high.number - low.number);
    const End end = end_at(pass % 3 != 0 && low.number < guess && guess < high.number ? guess : middle);
    (end.count >= k ? low : high) = end;
  }
  return {.low = low.number, .high = high.number, .above_high = high.count};
}

void TokenChoice::Narrow(double target, int64_t stride, int64_t few, HeavyWeights& low, HeavyWeights& high) const {
  // Two guesses a pass, close around where a line between the two ends meets the target; thirds if the last ones did
  // not have it between them.
  bool close = true;
  while (low.sum - high.sum > static_cast<double>(few) * low.least) {
    const int64_t first = ToOrdinal(low.least), distance = ToOrdinal(high.least) - first;
    if (distance < 4) return;
    const int64_t margin = close ? distance / 16 + 1 : distance / 6;
    const double part = close ? (low.sum - target) / (low.sum - high.sum) : 0.5;
    const int64_t middle = first + std::clamp(static_cast<int64_t>(part * static_cast<double>(distance)), margin + 1,
                                              distance - margin - 1);
    close = Compare(target, stride, middle - margin, middle + margin, low, high);
  }
}

bool TokenChoice::Compare(double target, int64_t stride, int64_t less, int64_t more, HeavyWeights& low,
                          HeavyWeights& high) const {
  HeavyWeights lighter = {.least = FromOrdinal<double>(less)}, heavier = {.least = FromOrdinal<double>(more)};
  passes_.add_up(weights_.data(), sums_.data(), static_cast<int64_t>(sums_.size()), stride, &lighter, &heavier);
  if (lighter.sum < target) {
    high = lighter;
  } else if (heavier.sum < target) {
    low = lighter;
    high = heavier;
    return true;
  } else {
    low = heavier;
  }
  return false;
}

template <typename Number>
double TokenChoice::KeepTopP(absl::Span<const Number> row, double top_p) {
  const auto blocks = static_cast<int64_t>(sums_.size());
  const double total = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  const double target = top_p * total;
  // All weights below the first `low` sum up to less than half of what may be left.
  HeavyWeights low = {.least = std::max(std::numeric_limits<double>::min(),
                                        (total - target) / (2 * static_cast<double>(weights_.size()))),
                      .sum = total};
  HeavyWeights high = {.least = FromOrdinal<double>(ToOrdinal(1.0) + 1)};
  if (blocks >= 4 * kSampleStride) {  // a sample says where to look
    HeavyWeights sample = low, sample_high = high, of_all = low;
    passes_.add_up(weights_.data(), sums_.data(), blocks, kSampleStride, &sample, &of_all);
    Narrow(top_p * sample.sum, kSampleStride, kFewCandidates / kSampleStride, sample, sample_high);
    constexpr int64_t kMargin = (int64_t{1} << 52) / 8;  // about an eighth of the weight
    const int64_t less = ToOrdinal(sample.least) - kMargin, more = ToOrdinal(sample_high.least) + kMargin;
    if (less > ToOrdinal(low.least) && more < ToOrdinal(high.least)) Compare(target, 1, less, more, low, high);
  }
  Narrow(target, 1, kFewCandidates, low, high);
  passes_.split(weights_.data(), blocks, low.least, high.least, sums_.data(), counts_.data());
  std::vector<int64_t>& candidates = candidates_;
  candidates.clear();
  for (int64_t block = 0; block < blocks; ++block) {
    if (counts_[block] == 0) continue;
    for (int64_t i = block * kRowBlock; i < (block + 1) * kRowBlock; ++i) {
      if (weights_[i] >= low.least && weights_[i] < high.least) candidates.push_back(i);
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [row](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  double reached = high.sum;
  for (const int64_t i : candidates) {
    if (reached < target) {
      reached += weights_[i];
      sums_[i / kRowBlock] += weights_[i];
    } else {
      weights_[i] = 0;
    }
  }
  return low.least;
}

template int64_t TokenChoice::Likeliest(absl::Span<const float> row);
template int64_t TokenChoice::Likeliest(absl::Span<const double> row);
template int64_t TokenChoice::Draw(absl::Span<const float> row, int64_t tokens, const SamplingOptions& options,
                                   double uniform);
template int64_t TokenChoice::Draw(absl::Span<const double> row, int64_t tokens, const SamplingOptions& options,
                                   double uniform);

}  // namespace longshort::core
