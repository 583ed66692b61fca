#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/ops/grid_attention/grid_attention.h"

namespace longshort::models::long_short_attention_2d_test {

// A random problem in double precision.
struct Problem {
  TokenGrid grid;
  WindowGeometry window;
  at::Tensor queries;
  KeyValues tokens, shared;
  at::Tensor window_bias;

  Problem(uint64_t seed, TokenGrid grid_, int64_t side, int64_t shared_count, bool has_bias, int64_t batch = 2,
          int64_t heads = 3, int64_t head_dim = 5)
      : grid(grid_), window{side} {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, generator, at::kDouble); };
    queries = random({batch, heads, grid.tokens(), head_dim});
    tokens = {random({batch, heads, grid.tokens(), head_dim}), random({batch, heads, grid.tokens(), head_dim})};
    shared = {random({batch, heads, shared_count, head_dim}), random({batch, heads, shared_count, head_dim})};
    if (has_bias) window_bias = random({heads, window.queries(), window.keys()});
  }

  at::Tensor Attend() const { return LongShortAttention2d(queries, tokens, shared, grid, window, window_bias); }
};

// The keys and values that one query sees, gathered token by token according to the definition.
class QueryLoop {
 public:
  QueryLoop(const Problem& problem, int64_t item, int64_t head) : problem_(problem), item_(item), head_(head) {}

  at::Tensor Attend(int64_t y, int64_t x) {
    query_ = problem_.queries[item_][head_][y * problem_.grid.width + x];
    scores_.clear();
    values_.clear();
    if (problem_.window.side > 0) AddWindow(y, x);
    for (int64_t j = 0; j < problem_.shared.keys.size(2); ++j) Add(problem_.shared, j, 0.0);
    const double highest = *std::max_element(scores_.begin(), scores_.end());
    double total = 0;
    at::Tensor sum = at::zeros_like(query_);
    for (size_t i = 0; i < scores_.size(); ++i) {
      const double weight = std::exp(scores_[i] - highest);
      total += weight;
      sum += values_[i] * weight;
    }
    return sum / total;
  }

 private:
  void AddWindow(int64_t y, int64_t x) {
    const int64_t side = problem_.window.side, margin = std::max<int64_t>(1, side / 2), seen = side + 2 * margin;
    const int64_t top = y / side * side - margin, left = x / side * side - margin;
    const int64_t place = y % side * side + x % side;
    for (int64_t row = 0; row < seen; ++row) {
      for (int64_t column = 0; column < seen; ++column) {
        const int64_t ky = top + row, kx = left + column;
        if (ky < 0 || ky >= problem_.grid.height || kx < 0 || kx >= problem_.grid.width) continue;
        const double bias = problem_.window_bias.defined()
                                ? problem_.window_bias[head_][place][row * seen + column].item<double>()
                                : 0.0;
        Add(problem_.tokens, ky * problem_.grid.width + kx, bias);
      }
    }
  }

  void Add(const KeyValues& vectors, int64_t index, double bias) {
    scores_.push_back(query_.dot(vectors.keys[item_][head_][index]).item<double>() + bias);
    values_.push_back(vectors.values[item_][head_][index]);
  }

  const Problem& problem_;
  int64_t item_, head_;
  at::Tensor query_;
  std::vector<double> scores_;
  std::vector<at::Tensor> values_;
};

double LargestDifferenceToLoop(const Problem& problem) {
  const at::Tensor attended = problem.Attend();
  double largest = 0;
  for (int64_t item = 0; item < problem.queries.size(0); ++item) {
    for (int64_t head = 0; head < problem.queries.size(1); ++head) {
      QueryLoop loop(problem, item, head);
      for (int64_t token = 0; token < problem.grid.tokens(); ++token) {
        const at::Tensor expected = loop.Attend(token / problem.grid.width, token % problem.grid.width);
        largest = std::max(largest, (attended[item][head][token] - expected).abs().max().item<double>());
      }
    }
  }
  return largest;
}

TEST(LongShortAttention2d, EqualsALoopOverQueriesWhateverTheShape) {
  std::mt19937 random(20);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 30; ++round) {
    const TokenGrid grid{draw(1, 9), draw(1, 9)};
    const int64_t side = draw(0, 5), shared = draw(side == 0 ? 1 : 0, 4);
    const Problem problem(round, grid, side, shared, side > 0 && draw(0, 1) == 1, draw(1, 2), draw(1, 2), draw(1, 6));
    EXPECT_LT(LargestDifferenceToLoop(problem), 1e-13)
        << grid.height << " x " << grid.width << ", w " << side << ", " << shared << " shared";
  }
}

// w = 8 sees 16 x 16 tokens, w = 3 sees 5 x 5, w = 1 sees 3 x 3.
TEST(WindowGeometry, SeesHalfAWindowMoreOnEachSideAndAtLeastOneToken) {
  EXPECT_EQ(WindowGeometry{8}.keys(), 256);
  EXPECT_EQ(WindowGeometry{3}.keys(), 25);
  EXPECT_EQ(WindowGeometry{1}.keys(), 9);
}

// Values of 1 give outputs of 1: nothing outside the grid takes part, even where it would have the largest score.
TEST(LongShortAttention2d, KeysOutsideTheGridHaveNoWeight) {
  Problem problem(1, {5, 3}, 4, 0, false);
  problem.queries.fill_(3.0);
  problem.tokens.keys.fill_(-3.0);  // scores far below the 0 of a zero key
  problem.tokens.values.fill_(1.0);
  EXPECT_LT((problem.Attend() - 1.0).abs().max().item<double>(), 1e-14);
}

TEST(LongShortAttention2d, AFarTokenHasNoInfluenceButASharedVectorHas) {
  Problem problem(2, {8, 8}, 2, 1, false);
  const at::Tensor before = problem.Attend();
  problem.tokens.values.select(2, 63).add_(1.0);  // at (7, 7); the segment of (4, 4) sees up to 6
  const at::Tensor changed = (problem.Attend() - before).abs().amax({0, 1, 3}).gt(0).view({8, 8});
  EXPECT_EQ(changed.sum().item<int64_t>(), 4);  // the segment of (6, 6)
  EXPECT_EQ(changed.narrow(0, 6, 2).narrow(1, 6, 2).sum().item<int64_t>(), 4);

  problem.shared.values.add_(1.0);
  EXPECT_GT((problem.Attend() - before).abs().amax({0, 1, 3}).min().item<double>(), 0.0);
}

// Gradients against central differences, along a random direction.
TEST(LongShortAttention2d, GradientsAreThoseOfTheFunction) {
  Problem problem(3, {5, 4}, 2, 2, true);
  const std::vector<at::Tensor> inputs = {problem.queries,     problem.tokens.keys,   problem.tokens.values,
                                          problem.shared.keys, problem.shared.values, problem.window_bias};
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(4);
  const at::Tensor direction_out = at::randn(problem.queries.sizes(), generator, at::kDouble);
  for (const at::Tensor& input : inputs) {
    input.requires_grad_(true);
    (problem.Attend() * direction_out).sum().backward();
    const at::Tensor direction = at::randn(input.sizes(), generator, at::kDouble);
    const double slope = (input.grad() * direction).sum().item<double>();
    input.requires_grad_(false);
    const double step = 1e-6;
    input.add_(direction, step);
    const double above = (problem.Attend() * direction_out).sum().item<double>();
    input.add_(direction, -2 * step);
    const double below = (problem.Attend() * direction_out).sum().item<double>();
    input.add_(direction, step);
    EXPECT_NEAR(slope, (above - below) / (2 * step), 1e-6 * std::max(1.0, std::abs(slope)));
  }
}

}  // namespace longshort::models::long_short_attention_2d_test
