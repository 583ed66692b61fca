#include "models/layers/linear.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"

namespace longshort {
namespace {

Linear RandomMap(int64_t out, int64_t in, at::ScalarType type, bool has_bias) {
  return {.weight = at::randn({out, in}).to(type), .bias = has_bias ? at::randn({out}) : at::Tensor()};
}

TEST(Linear, APackedMapGivesWhatThePlainOneGives) {
  at::manual_seed(7);
  for (const bool has_bias : {false, true}) {
    for (const auto& [out, in] : {std::pair{24, 40}, {192, 192}, {96, 512}, {512, 2048}}) {
      const Linear plain = RandomMap(out, in, at::kBFloat16, has_bias);
      const Linear packed = plain.Packed();
      for (const int64_t rows : {1, 3, 16, 100}) {
        const at::Tensor input = at::randn({rows, in});
        const at::Tensor expected = plain(input), found = packed(input);
        ASSERT_EQ(found.sizes(), expected.sizes());
        ASSERT_EQ(found.scalar_type(), at::kFloat);
        // Both round to bfloat16 once, after sums of another order: a unit in the last place of 8 bits.
        EXPECT_TRUE(at::allclose(found, expected, /*rtol=*/1.0 / 128, /*atol=*/1e-3))
            << out << " x " << in << ", " << rows << " rows: off by " << at::max(at::abs(found - expected));
      }
    }
  }
}

TEST(Linear, APackedMapKeepsNoSecondCopyOfItsWeight) {
  const Linear packed = RandomMap(64, 64, at::kBFloat16, false).Packed();
  EXPECT_NE(packed.packed.defined(), packed.weight.defined());
}

TEST(Linear, APackedMapTakesRowsOfAnyDimensions) {
  const Linear packed = RandomMap(24, 40, at::kBFloat16, true).Packed();
  const at::Tensor input = at::randn({2, 3, 40});
  const at::Tensor found = packed(input);
  ASSERT_EQ(found.sizes(), (std::vector<int64_t>{2, 3, 24}));
  EXPECT_TRUE(at::allclose(found.flatten(0, 1), packed(input.flatten(0, 1)), 1.0 / 128, 1e-3));
}

TEST(Linear, AFloat32MapStaysAsItIs) {
  const Linear map = RandomMap(24, 40, at::kFloat, true);
  const Linear packed = map.Packed();
  EXPECT_TRUE(packed.weight.is_same(map.weight));
  EXPECT_FALSE(packed.packed.defined());
}

}  // namespace
}  // namespace longshort
