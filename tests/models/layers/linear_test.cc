#include "models/layers/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort {
namespace {

Linear RandomMap(int64_t out, int64_t in, at::ScalarType type, bool has_bias) {
  return {.weight = at::randn({out, in}).to(type), .bias = has_bias ? at::randn({out}) : at::Tensor()};
}

// The largest difference of `found` from the map in float64, in parts of a result's standard deviation (the weights and
// rows here are from a standard normal distribution).
double ErrorOf(const at::Tensor& found, const Linear& map, const at::Tensor& rows) {
  at::Tensor exact = at::matmul(rows.to(at::kDouble), map.weight.to(at::kDouble).t());
  if (map.bias.defined()) exact += map.bias;
  return at::max(at::abs(found.to(at::kDouble) - exact)).item<double>() /
         std::sqrt(static_cast<double>(map.weight.size(1)));
}

void ExpectPackedGivesWhatPlainGives(at::ScalarType type, double bound) {
  at::manual_seed(7);
  for (const bool has_bias : {false, true}) {
    for (const auto& [out, in] : {std::pair{24, 40}, {192, 192}, {198, 192}, {96, 512}, {512, 2048}}) {
      Linear plain = RandomMap(out, in, type, has_bias);
      if (type == at::kHalf) plain.weight = plain.weight.to(at::kFloat);
      const Linear packed = plain.Packed();
      for (const int64_t rows : {1, 2, 3, 16, 100}) {
        const at::Tensor input = at::randn({rows, in});
        const at::Tensor found = packed(input);
        ASSERT_EQ(found.sizes(), (std::vector<int64_t>{rows, out}));
        ASSERT_EQ(found.scalar_type(), at::kFloat);
        EXPECT_LT(ErrorOf(found, plain, input), bound) << out << " x " << in << ", " << rows << " rows";
      }
    }
  }
}

// Rows and results are rounded to 8 bits; results reach 4 to 5 standard deviations.
TEST(Linear, APackedBFloat16MapGivesWhatThePlainOneGives) { ExpectPackedGivesWhatPlainGives(at::kBFloat16, 2e-2); }

TEST(Linear, AMapStoredInFloat16IsExactWhenPacked) { ExpectPackedGivesWhatPlainGives(at::kHalf, 2e-5); }

TEST(Linear, WeightsOutsideFloat16ArePackedWithoutLossOrNotAtAll) {
  for (const double outlier : {1e5, -3e38}) {
    Linear plain = RandomMap(64, 64, at::kBFloat16, false);
    plain.weight[5][6] = outlier;
    const at::Tensor input = at::eye(64);
    const at::Tensor found = plain.Packed()(input);
    EXPECT_TRUE(at::allclose(found.t(), plain.weight.to(at::kFloat), 1.0 / 128, 1e-3)) << outlier;
  }
}

TEST(Linear, APackedMapKeepsNoSecondCopyOfItsWeight) {
  const Linear packed = RandomMap(64, 64, at::kBFloat16, false).Packed();
  EXPECT_NE(packed.packed != nullptr, packed.weight.defined());
}

TEST(Linear, APackedMapTakesRowsOfAnyDimensions) {
  const Linear packed = RandomMap(24, 40, at::kBFloat16, true).Packed();
  const at::Tensor input = at::randn({2, 3, 40});
  const at::Tensor found = packed(input);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{2, 3, 24}));
  EXPECT_TRUE(at::allclose(found.flatten(0, 1), packed(input.flatten(0, 1)), 1.0 / 128, 1e-3));
}

TEST(Linear, AFloat32MapThatFloat16CannotHoldStaysAsItIs) {
  const Linear map = RandomMap(24, 40, at::kFloat, true);
  const Linear packed = map.Packed();
  EXPECT_TRUE(packed.weight.is_same(map.weight));
  EXPECT_EQ(packed.packed, nullptr);
}

}  // namespace
}  // namespace longshort
