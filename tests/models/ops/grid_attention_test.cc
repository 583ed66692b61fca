#include "models/ops/grid_attention/grid_attention.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/ops/grid_attention/grid_attention_kernels.h"
#include "models/ops/item_attention/item_attention.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models::grid_attention_test {

constexpr double kTolerance = 1e-5;

// Random rows, of which queries, keys and values are parts, as after one product.
struct Problem {
  TokenGrid grid;
  WindowGeometry window;
  RowsToAttend rows;
  WindowBias bias;

  Problem(uint64_t seed, TokenGrid grid_, int64_t side, int64_t shared, bool has_bias, int64_t heads, int64_t width)
      : grid(grid_), window{side} {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, generator, at::kFloat); };
    const std::vector<at::Tensor> projected = random({2, 1 + grid.tokens(), 3 * heads * width}).chunk(3, 2);
    const auto of_tokens = [&](size_t part) { return projected[part].narrow(1, 1, grid.tokens()); };
    rows = {.heads = heads,
            .queries = of_tokens(0),
            .tokens = {.keys = of_tokens(1), .values = of_tokens(2)},
            .shared = {.keys = random({2, shared, heads * width}), .values = random({2, shared, heads * width})}};
    if (has_bias) {
      bias.index = WindowBiasIndex(side, at::kCPU);
      bias.table = random({bias.index.max().item<int64_t>() + 1, heads});
    }
  }

  // The reference in double precision, [2, tokens, d].
  at::Tensor Exact() const {
    const auto by_head = [this](const at::Tensor& all) {
      return all.to(at::kDouble).unflatten(2, {rows.heads, -1}).transpose(1, 2);
    };
    const at::Tensor queries = by_head(rows.queries);
    return LongShortAttention2d(queries / std::sqrt(static_cast<double>(queries.size(3))),
                                {by_head(rows.tokens.keys), by_head(rows.tokens.values)},
                                {by_head(rows.shared.keys), by_head(rows.shared.values)}, grid, window, Bias())
        .transpose(1, 2)
        .flatten(2);
  }
  at::Tensor KernelBias() const { return bias.table.defined() ? WithVectorBehind(Bias()) : at::Tensor(); }
  at::Tensor Bias() const { return bias.table.defined() ? BiasOfPairs(bias.table, bias.index) : at::Tensor(); }
};

double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).abs().max().item<double>();  // NaN stays
}

// The first head of the first image.
at::Tensor FirstHead(const Problem& problem, cpu::InstructionSet set) {
  const auto from = [](const at::Tensor& rows) {
    return cpu::HeadRows<const float>{rows.const_data_ptr<float>(), rows.stride(1)};
  };
  const at::Tensor bias = problem.KernelBias();
  const int64_t width = problem.rows.queries.size(2) / problem.rows.heads;
  const cpu::GridHead head{.head_width = width,
                           .height = problem.grid.height,
                           .width = problem.grid.width,
                           .side = problem.window.side,
                           .margin = problem.window.margin(),
                           .shared = problem.rows.shared.keys.size(1),
                           .queries = from(problem.rows.queries),
                           .keys = from(problem.rows.tokens.keys),
                           .values = from(problem.rows.tokens.values),
                           .shared_keys = from(problem.rows.shared.keys),
                           .shared_values = from(problem.rows.shared.values),
                           .bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr};
  at::Tensor attended = at::full({problem.grid.tokens(), width}, NAN);
  for (int64_t band = 0; band < head.bands(); ++band) {
    std::vector<float> scratch(cpu::AttendGridScratchFloats(head), NAN);
    cpu::AttendGrid(head, band, {attended.mutable_data_ptr<float>(), width}, scratch.data(), set);
  }
  return attended;
}

TEST(GridAttention, IsTheReferenceForAnyShapeOnEveryInstructionSet) {
  std::mt19937 random(20);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    const TokenGrid grid{draw(1, 20), draw(1, 20)};
    const int64_t side = draw(1, 9), shared = draw(0, 20), heads = draw(1, 3), width = draw(1, 40);
    const Problem problem(round, grid, side, shared, draw(0, 1) == 1, heads, width);
    const std::string shape = absl::StrCat(grid.height, " x ", grid.width, ", w ", side, ", ", shared, " shared, ",
                                           heads, " heads of ", width);
    const at::Tensor exact = problem.Exact();
    for (const cpu::InstructionSet set : cpu::InstructionSetsHere()) {
      EXPECT_LT(LargestDifference(FirstHead(problem, set), exact[0].narrow(1, 0, width)), kTolerance)
          << cpu::InstructionSetName(set) << ", " << shape;
    }
    const at::Tensor attended = AttendGrids(problem.rows, grid, problem.window, problem.KernelBias(), /*others=*/2);
    EXPECT_LT(LargestDifference(attended.narrow(1, 2, grid.tokens()), exact), kTolerance) << shape;
  }
}

TEST(GridAttention, ServesWithoutGradientsAndTheReferenceTrains) {
  Problem problem(1, {9, 7}, 3, 2, true, 2, 4);
  CpuItemAttention attention;
  const auto attend = [&] {
    return attention.AttendInGrids(problem.rows, problem.grid, problem.window, problem.bias, /*others=*/0);
  };
  EXPECT_TRUE(CanAttendGrids(problem.rows, problem.window));
  const at::Tensor served = attend();
  EXPECT_LT(LargestDifference(served, problem.Exact()), kTolerance);

  problem.rows.shared.values.requires_grad_(true);
  EXPECT_FALSE(CanAttendGrids(problem.rows, problem.window));
  const at::Tensor trained = attend();
  EXPECT_LT(LargestDifference(trained.detach(), served), kTolerance);
  trained.sum().backward();
  EXPECT_GT(problem.rows.shared.values.grad().abs().sum().item<double>(), 0);
}

TEST(GridAttention, LeavesOtherTypesAndNoWindowToTheReference) {
  Problem problem(1, {4, 4}, 2, 1, false, 1, 4);
  EXPECT_FALSE(CanAttendGrids(problem.rows, {.side = 0}));
  problem.rows.queries = problem.rows.queries.to(at::kDouble);
  EXPECT_FALSE(CanAttendGrids(problem.rows, problem.window));
}

}  // namespace longshort::models::grid_attention_test
