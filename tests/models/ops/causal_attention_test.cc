#include "models/ops/causal_attention/causal_attention.h"

#include <cmath>
#include <vector>

#include "ATen/Context.h"
#include "ATen/Functions.h"
#include "ATen/TensorIndexing.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"

namespace longshort::models::causal_attention_test {

// A problem whose first query, at position `position` of a stream, begins a chunk.
struct Problem {
  int64_t batch = 2;
  int64_t heads = 2;
  int64_t head_dim = 4;
  int64_t chunk_size = 4;
  int64_t rank = 2;
  int64_t window = 5;   // W
  int64_t queries = 8;  // n
  int64_t visible = 6;  // vectors that the first chunk's queries see

  at::Tensor query, window_keys, window_values, chunk_keys, chunk_values;
  RelativePositions positions;

  explicit Problem(int64_t n = 8, int64_t seen = 6) : queries(n), visible(seen) {
    at::manual_seed(7);
    const auto random = [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
    const int64_t vectors = visible + (queries / chunk_size - 1) * rank;
    query = random({batch, queries, heads, head_dim});
    window_keys = random({batch, window - 1 + queries, heads, head_dim});
    window_values = random({batch, window - 1 + queries, heads, head_dim});
    chunk_keys = random({batch, vectors, heads, head_dim});
    chunk_values = random({batch, vectors, heads, head_dim});
    positions = {.window = random({window, heads, head_dim}),
                 .chunk = random({vectors, heads, head_dim}),
                 .window_bias = random({heads, head_dim}),
                 .relative_bias = random({heads, head_dim})};
  }

  at::Tensor Attend() const {
    return CausalAttention(query, window_keys, window_values, chunk_keys, chunk_values, visible, chunk_size, rank,
                           positions);
  }

  // The output of one query and head, [head_dim], by definition: one softmax over the W keys up to its own position and
  // the vectors that its chunk sees, each scored by content and by distance.
  std::vector<double> Plain(int64_t b, int64_t i, int64_t h) const {
    const auto at4 = [](const at::Tensor& t, int64_t x, int64_t y, int64_t z, int64_t d) {
      return t.index({x, y, z, d}).item<double>();
    };
    const auto at3 = [](const at::Tensor& t, int64_t x, int64_t y, int64_t d) {
      return t.index({x, y, d}).item<double>();
    };
    const auto bias = [&](const at::Tensor& t, int64_t d) { return t.index({h, d}).item<double>(); };
    std::vector<double> scores;
    std::vector<std::vector<double>> values;
    const auto meet = [&](const at::Tensor& keys, const at::Tensor& value_rows, int64_t row, const at::Tensor& table,
                          int64_t distance, bool of_window) {
      double score = 0;
      std::vector<double> value;
      for (int64_t d = 0; d < head_dim; ++d) {
        const double q = at4(query, b, i, h, d);
        const double content = q + (of_window ? bias(positions.window_bias, d) : 0);
        const double relative = q + (of_window ? bias(positions.relative_bias, d) : 0);
        score += content * at4(keys, b, row, h, d) + relative * at3(table, distance, h, d);
        value.push_back(at4(value_rows, b, row, h, d));
      }
      scores.push_back(score);
      values.push_back(value);
    };
    for (int64_t distance = 0; distance < window; ++distance) {
      meet(window_keys, window_values, window - 1 + i - distance, positions.window, distance, true);
    }
    const int64_t sees = visible + i / chunk_size * rank;
    for (int64_t vector = 0; vector < sees; ++vector) {
      meet(chunk_keys, chunk_values, vector, positions.chunk, sees - 1 - vector, false);
    }
    double sum = 0;
    std::vector<double> output(head_dim);
    for (size_t k = 0; k < scores.size(); ++k) {
      sum += std::exp(scores[k]);
      for (int64_t d = 0; d < head_dim; ++d) output[d] += std::exp(scores[k]) * values[k][d];
    }
    for (double& value : output) value /= sum;
    return output;
  }
};

void ExpectPlain(const Problem& problem) {
  const at::Tensor attended = problem.Attend();
  ASSERT_EQ(attended.sizes(), (std::vector<int64_t>{problem.batch, problem.queries, problem.heads * problem.head_dim}));
  for (int64_t b = 0; b < problem.batch; ++b) {
    for (int64_t i = 0; i < problem.queries; ++i) {
      for (int64_t h = 0; h < problem.heads; ++h) {
        const std::vector<double> expected = problem.Plain(b, i, h);
        for (int64_t d = 0; d < problem.head_dim; ++d) {
          EXPECT_NEAR(attended.index({b, i, h * problem.head_dim + d}).item<double>(), expected[d], 1e-12)
              << "query " << i << " of " << b << ", head " << h;
        }
      }
    }
  }
}

TEST(CausalAttention, IsOneSoftmaxOverTheWindowAndTheVectorsThatAChunkSees) { ExpectPlain(Problem()); }

TEST(CausalAttention, TheFirstChunkOfAStreamMaySeeNoVector) { ExpectPlain(Problem(/*n=*/12, /*seen=*/0)); }

TEST(CausalAttention, OneChunkOfQueries) { ExpectPlain(Problem(/*n=*/4, /*seen=*/2)); }

// Keys that a query must not see may have any value.
TEST(CausalAttention, NothingAfterAQueryTouchesIt) {
  Problem problem;
  const at::Tensor before = problem.Attend();
  const int64_t first = problem.chunk_size;  // of the second chunk
  problem.window_keys.narrow(1, problem.window - 1 + first, problem.queries - first).fill_(1e3);
  problem.window_values.narrow(1, problem.window - 1 + first, problem.queries - first).fill_(1e3);
  problem.chunk_keys.narrow(1, problem.visible, problem.rank).fill_(1e3);
  problem.chunk_values.narrow(1, problem.visible, problem.rank).fill_(1e3);
  const at::Tensor after = problem.Attend();
  EXPECT_TRUE(at::equal(before.narrow(1, 0, first), after.narrow(1, 0, first)));
  EXPECT_FALSE(at::allclose(before.narrow(1, first, first), after.narrow(1, first, first)));
}

TEST(CausalAttention, HasGradientsOfAllItsArguments) {
  Problem problem;
  at::Tensor* const arguments[] = {
      &problem.query,           &problem.window_keys,           &problem.window_values,
      &problem.chunk_keys,      &problem.chunk_values,          &problem.positions.window,
      &problem.positions.chunk, &problem.positions.window_bias, &problem.positions.relative_bias};
  for (at::Tensor* const argument : arguments) argument->requires_grad_();
  problem.Attend().square().sum().backward();
  for (const at::Tensor* const argument : arguments) {
    ASSERT_TRUE(argument->grad().defined());
    EXPECT_GT(argument->grad().abs().max().item<double>(), 0);
  }
}

}  // namespace longshort::models::causal_attention_test
