#include "models/ops/products/panel_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "models/ops/products/product_kernels.h"
#include "models/ops/rows/cpu_kernels.h"
#include "tests/models/ops/instruction_set_name.h"

namespace longshort::models {
namespace {

constexpr std::pair<int64_t, int64_t> kShapes[] = {{1, 1}, {24, 40}, {64, 64}, {130, 65}, {96, 514}};
constexpr int64_t kRows[] = {1, 3, 8, 17, 64, 70, 133};

at::Tensor Rounded(const at::Tensor& numbers) { return numbers.to(at::kBFloat16).to(at::kFloat); }

// The weights that Int8Panels stands for.
at::Tensor InInt8(const at::Tensor& weight) {
  at::Tensor rounded = weight.clone();
  for (int64_t first = 0; first < weight.size(1); first += cpu::kGroupInputs) {
    at::Tensor group = rounded.narrow(1, first, std::min(cpu::kGroupInputs, weight.size(1) - first));
    const at::Tensor scale = group.abs().amax({1}, /*keepdim=*/true) / 127;
    group.copy_(at::round(group / scale) * scale);
  }
  return rounded;
}

// In parts of a result's standard deviation.
double Difference(const at::Tensor& found, const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias,
                  bool gelu) {
  at::Tensor expected = at::matmul(rows.to(at::kDouble), weight.to(at::kDouble).t());
  if (bias.defined()) expected += bias;
  if (gelu) expected = at::gelu(expected);
  EXPECT_EQ(found.sizes(), expected.sizes());
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  return at::max(at::abs(found - expected)).item<double>() / std::sqrt(static_cast<double>(weight.size(1)));
}

// Calls `check(matrix's weight, rows, bias, gelu)` for many shapes.
template <typename Check>
void ForEachProduct(const Check& check) {
  at::manual_seed(7);
  for (const auto& [out, in] : kShapes) {
    const at::Tensor weight = at::randn({out, in});
    for (const int64_t count : kRows) {
      SCOPED_TRACE(testing::Message() << out << " x " << in << ", " << count << " rows");
      check(weight, at::randn({count, in}), at::Tensor(), false);
      check(weight, at::randn({count, in}), at::randn({out}), true);
    }
  }
}

constexpr double kFloat32Error = 2e-5;

TEST(Int8Panels, AFloat32ProductIsThatOfWeightsRoundedToMultiplesOfTheirGroupsScale) {
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const at::Tensor found = Int8Panels(weight, Int8Panels::Rows::kFloat).Multiply(rows, {.bias = bias, .gelu = gelu});
    EXPECT_LT(Difference(found, rows, InInt8(weight), bias, gelu), kFloat32Error);
  });
}

TEST(FloatPanels, AProductIsExactAndMayBeAdded) {
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const FloatPanels panels(weight);
    EXPECT_LT(Difference(panels.Multiply(rows, {.bias = bias, .gelu = gelu}), rows, weight, bias, gelu), kFloat32Error);
    const at::Tensor added = at::randn({rows.size(0), weight.size(0)});
    EXPECT_LT(Difference(panels.Multiply(rows, {.bias = bias, .added = added}) - added, rows, weight, bias, false),
              kFloat32Error);
  });
}

TEST(FloatPanels, ARowHasTheSameBitsAmongOthersAndWithAStride) {
  const FloatPanels panels(at::randn({100, 800}));
  const at::Tensor rows = at::randn({500, 2, 800}).select(1, 1);
  const at::Tensor found = panels.Multiply(rows, {.gelu = true});
  for (const int64_t row : {0, 7, 499}) {
    EXPECT_TRUE(at::equal(found[row], panels.Multiply(rows.narrow(0, row, 1), {.gelu = true})[0]));
  }
}

TEST(FloatProducts, AreTheSameOnEveryInstructionSet) {
  for (const int64_t outputs : {1, 16, 33, 48}) {
    const at::Tensor weight = at::randn({48, 1000}), bias = at::randn({outputs}), rows = at::randn({13, 1000});
    weight.narrow(0, outputs, 48 - outputs).zero_();
    const at::Tensor panel = weight.t().contiguous();
    for (const cpu::InstructionSet set : cpu::InstructionSetsHere()) {
      const at::Tensor out = at::zeros({13, outputs});
      cpu::MultiplyFloats({panel.const_data_ptr<float>(), 1000, outputs, bias.const_data_ptr<float>()},
                          {rows.const_data_ptr<float>(), 1000}, 13, {out.mutable_data_ptr<float>(), outputs},
                          /*added=*/{}, /*gelu=*/true, set);
      EXPECT_LT(Difference(out, rows, weight.narrow(0, 0, outputs), bias, true), kFloat32Error)
          << cpu::InstructionSetName(set) << ", " << outputs;
    }
  }
}

TEST(FloatProducts, NormalizeRowsOnEveryInstructionSet) {
  for (const int64_t width : {1, 24, 96, 385}) {
    const at::Tensor rows = at::randn({5, 2, width}).select(1, 1), gain = at::randn({width}), bias = at::randn({width});
    const at::Tensor exact = at::layer_norm(rows.to(at::kDouble), {width}, gain.to(at::kDouble), bias.to(at::kDouble));
    const cpu::RowNorm norm{gain.const_data_ptr<float>(), bias.const_data_ptr<float>(), 1e-5F};
    for (const cpu::InstructionSet set : cpu::InstructionSetsHere()) {
      const at::Tensor out = at::empty({5, width});
      cpu::NormalizeFloats(norm, width, {rows.const_data_ptr<float>(), rows.stride(0)}, 5,
                           {out.mutable_data_ptr<float>(), width}, set);
      EXPECT_LT(at::max(at::abs(out - exact)).item<double>(), 1e-5) << cpu::InstructionSetName(set) << ", " << width;
    }
  }
}

TEST(Int8Panels, AProductByTilesRoundsRowsAndScaledWeightsToBFloat16) {
  if (cpu::BestInstructionSet() != cpu::InstructionSet::kAvx512) GTEST_SKIP() << "no AVX-512";
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const at::Tensor found =
        Int8Panels(weight, Int8Panels::Rows::kBFloat16).Multiply(rows, {.bias = bias, .gelu = gelu});
    // A scaled weight that is nearly between two bfloat16 numbers may become either.
    constexpr double kFewOtherRoundings = 1e-3;
    const bool is_exact = Difference(found, rows, InInt8(weight), bias, gelu) < kFloat32Error;
    const bool is_rounded = Difference(found, Rounded(rows), Rounded(InInt8(weight)), bias, gelu) < kFewOtherRoundings;
    EXPECT_TRUE(rows.size(0) < 8 ? is_exact : is_rounded);
  });
}

TEST(Int8Panels, AWeightOfZerosAndAnOutlierStayInTheirGroup) {
  at::Tensor weight = at::randn({70, 128});
  weight[3].zero_();
  weight[5][100] = 1e6;
  const at::Tensor found = Int8Panels(weight, Int8Panels::Rows::kFloat).Multiply(at::eye(128), {}).t();
  EXPECT_EQ(at::max(at::abs(found[3])).item<double>(), 0);
  EXPECT_NEAR(found[5][100].item<double>(), 1e6, 1);
  EXPECT_LT(at::max(at::abs(found - weight).narrow(1, 0, 64)).item<double>(), 0.02);
}

TEST(Int8Panels, AProductOfInt8RowsIsThatOfRowsAndWeightsRoundedToMultiplesOfTheirGroupsScale) {
  if (!cpu::HasInt8DotProducts()) GTEST_SKIP() << "no dot products of bytes";
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const Int8Panels panels(weight, Int8Panels::Rows::kInt8);
    const at::Tensor found = panels.Multiply(rows, {.bias = bias, .gelu = gelu});
    // A number that is nearly between two multiples may become either.
    constexpr double kFewOtherRoundings = 5e-3;
    EXPECT_LT(Difference(found, InInt8(rows), InInt8(weight), bias, gelu), kFewOtherRoundings);
    EXPECT_TRUE(at::equal(panels.Multiply(rows.narrow(0, rows.size(0) - 1, 1), {.bias = bias, .gelu = gelu})[0],
                          found[rows.size(0) - 1]))
        << "a row's bits depend on other rows";
    const at::Tensor added = at::randn_like(found);
    EXPECT_LT(Difference(panels.Multiply(rows, {.bias = bias, .added = added}) - added, InInt8(rows), InInt8(weight),
                         bias, false),
              kFewOtherRoundings);
  });
}

TEST(Int8Panels, Int8RowsMayBeZeroOrHugeAndPassOnWhatIsNotFinite) {
  if (!cpu::HasInt8DotProducts()) GTEST_SKIP() << "no dot products of bytes";
  const at::Tensor weight = at::randn({70, 130});
  at::Tensor rows = at::zeros({5, 130});
  rows[1].fill_(1e30);
  rows[2][129] = std::numeric_limits<float>::quiet_NaN();
  rows[3][64] = std::numeric_limits<float>::infinity();
  rows[4].fill_(1e-42);
  const at::Tensor found = Int8Panels(weight, Int8Panels::Rows::kInt8).Multiply(rows, {});
  EXPECT_TRUE(at::equal(found[0], at::zeros({70})));
  EXPECT_LT(Difference(found.narrow(0, 1, 1) / 1e30, InInt8(rows[1].unsqueeze(0)) / 1e30, InInt8(weight), {}, false),
            1e-3);
  EXPECT_FALSE(at::isfinite(found[2]).any().item<bool>());
  EXPECT_FALSE(at::isfinite(found[3]).any().item<bool>());
  EXPECT_LT(at::max(at::abs(found[4])).item<double>(), 1e-38);
}

TEST(BFloat16Panels, AProductIsThatOfRoundedRowsAndWeights) {
  if (cpu::BestInstructionSet() != cpu::InstructionSet::kAvx512) GTEST_SKIP() << "no AVX-512";
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const BFloat16Panels panels(weight.to(at::kBFloat16), /*widens=*/false);
    const at::Tensor found = panels.Multiply(rows, {.bias = bias, .gelu = gelu});
    EXPECT_LT(Difference(found, Rounded(rows), Rounded(weight), bias, gelu), kFloat32Error);
    const at::Tensor added = at::randn_like(found);
    EXPECT_LT(Difference(panels.Multiply(rows, {.bias = bias, .added = added}) - added, Rounded(rows), Rounded(weight),
                         bias, false),
              kFloat32Error);
  });
}

TEST(BFloat16Panels, ManyRowsStayFloat32IfTheWeightsAreWidened) {
  if (cpu::BestInstructionSet() != cpu::InstructionSet::kAvx512) GTEST_SKIP() << "no AVX-512";
  ForEachProduct([](const at::Tensor& weight, const at::Tensor& rows, const at::Tensor& bias, bool gelu) {
    const at::Tensor found =
        BFloat16Panels(weight.to(at::kBFloat16), /*widens=*/true).Multiply(rows, {.bias = bias, .gelu = gelu});
    const at::Tensor seen = rows.size(0) < 48 ? Rounded(rows) : rows;
    EXPECT_LT(Difference(found, seen, Rounded(weight), bias, gelu), kFloat32Error);
  });
}

TEST(BFloat16Panels, RowsMayHaveAStrideAndAnyDimensions) {
  if (cpu::BestInstructionSet() != cpu::InstructionSet::kAvx512) GTEST_SKIP() << "no AVX-512";
  const at::Tensor weight = at::randn({24, 40}), rows = at::randn({2, 3, 50}).narrow(2, 4, 40);
  const at::Tensor found = BFloat16Panels(weight.to(at::kBFloat16), /*widens=*/false).Multiply(rows, {});
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{2, 3, 24}));
  EXPECT_LT(Difference(found, Rounded(rows), Rounded(weight), {}, false), kFloat32Error);
}

}  // namespace
}  // namespace longshort::models
