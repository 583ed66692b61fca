#include "models/ops/layers/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort::models::linear_test {

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

constexpr double kFloat32Error = 2e-5;

// `type`: that the weights are stored in.
void ExpectPackedGivesWhatPlainGives(at::ScalarType type) {
  at::manual_seed(7);
  for (const bool has_bias : {false, true}) {
    for (const auto& [out, in] : {std::pair{24, 40}, {192, 192}, {198, 192}, {96, 512}, {512, 2048}}) {
      Linear plain = RandomMap(out, in, type, has_bias);
      if (type == at::kHalf) plain.weight = plain.weight.to(at::kFloat);
      const Linear packed = plain.Packed(plain.weight.scalar_type());
      EXPECT_TRUE(packed.packed != nullptr || !__builtin_cpu_supports("avx2"));
      for (const int64_t rows : {1, 2, 3, 16, 100}) {
        const at::Tensor input = at::randn({rows, in});
        const at::Tensor found = packed(input);
        ASSERT_EQ(found.sizes(), (std::vector<int64_t>{rows, out}));
        ASSERT_EQ(found.scalar_type(), at::kFloat);
        if (ErrorOf(found, plain, input) < kFloat32Error) continue;
        // The rows are rounded to bfloat16.
        ASSERT_TRUE(type == at::kBFloat16 && __builtin_cpu_supports("avx512bf16"));
        EXPECT_LT(ErrorOf(found, plain, input.to(at::kBFloat16)), kFloat32Error)
            << out << " x " << in << ", " << rows << " rows";
      }
    }
  }
}

TEST(Linear, APackedBFloat16MapGivesWhatThePlainOneGives) { ExpectPackedGivesWhatPlainGives(at::kBFloat16); }

TEST(Linear, AMapStoredInFloat16IsExactWhenPacked) { ExpectPackedGivesWhatPlainGives(at::kHalf); }

TEST(Linear, WeightsOutsideFloat16ArePackedWithoutLossOrNotAtAll) {
  for (const double outlier : {1e5, -3e38}) {
    Linear plain = RandomMap(64, 64, at::kBFloat16, false);
    plain.weight[5][6] = outlier;
    const at::Tensor input = at::eye(64);
    const at::Tensor found = plain.Packed(at::kBFloat16)(input);
    EXPECT_TRUE(at::allclose(found.t(), plain.weight.to(at::kFloat), 1.0 / 128, 1e-3)) << outlier;
  }
}

TEST(Linear, APackedMapKeepsNoSecondCopyOfItsWeight) {
  const Linear packed = RandomMap(64, 64, at::kBFloat16, false).Packed(at::kBFloat16);
  EXPECT_NE(packed.packed != nullptr, packed.weight.defined());
}

TEST(Linear, APackedMapTakesRowsOfAnyDimensions) {
  const Linear packed = RandomMap(24, 40, at::kBFloat16, true).Packed(at::kBFloat16);
  const at::Tensor input = at::randn({2, 3, 40});
  const at::Tensor found = packed(input);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{2, 3, 24}));
  EXPECT_TRUE(at::allclose(found.flatten(0, 1), packed(input.flatten(0, 1)), 1.0 / 128, 1e-3));
}

TEST(Linear, AFloat32MapThatFloat16CannotHoldStaysAsItIs) {
  const Linear random = RandomMap(24, 40, at::kFloat, true);
  Linear infinite = RandomMap(24, 40, at::kHalf, true);
  infinite.weight = infinite.weight.to(at::kFloat);
  infinite.weight[5][6] = std::numeric_limits<float>::infinity();
  for (const Linear& map : {random, infinite}) {
    const at::Tensor weight = map.weight.clone();
    const Linear packed = map.Packed(at::kFloat);
    EXPECT_TRUE(packed.weight.is_same(map.weight));
    EXPECT_TRUE(at::equal(packed.weight, weight));
    EXPECT_EQ(packed.packed, nullptr);
  }
}

}  // namespace longshort::models::linear_test
