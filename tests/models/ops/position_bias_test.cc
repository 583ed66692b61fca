#include <algorithm>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/families/vil/vil_config.h"
#include "models/ops/grid_attention/grid_attention.h"

namespace longshort::models::position_bias_test {

TEST(VilPositionBias, WindowRowsAreThoseOfTheOfficialCode) {
  for (int64_t w = 2; w <= 9; ++w) {
    const int64_t wp = w / 2, visible = w + 2 * wp;
    const at::Tensor index = WindowBiasIndex(w, at::kCPU);
    ASSERT_EQ(index.sizes(), at::IntArrayRef({w * w, visible * visible}));
    const auto rows = index.accessor<int64_t, 2>();
    for (int64_t qr = 0; qr < w; ++qr) {
      for (int64_t qc = 0; qc < w; ++qc) {
        for (int64_t kr = -wp; kr < w + wp; ++kr) {
          for (int64_t kc = -wp; kc < w + wp; ++kc) {
            const int64_t expected = (qr - kr + wp + w - 1) * (2 * wp + w) + (qc - kc + wp + w - 1);
            ASSERT_EQ(rows[qr * w + qc][(kr + wp) * visible + kc + wp], expected) << w;
          }
        }
      }
    }
  }
}

TEST(VilPositionBias, WindowRowsLieInTheTable) {
  for (int64_t w = 1; w <= 16; ++w) {
    EXPECT_GE(WindowBiasIndex(w, at::kCPU).min().item<int64_t>(), 0) << w;
    EXPECT_LT(WindowBiasIndex(w, at::kCPU).max().item<int64_t>(), WindowBiasRows(w)) << w;
  }
}

// For windows of 2 x 2, row offsets -2..2 count 4 each, and column offsets are 0 to 4: (0, 4) and (1, 0) share a row.
TEST(VilPositionBias, DifferentOffsetsShareARow) {
  const at::Tensor index = WindowBiasIndex(2, at::kCPU);
  const auto rows = index.accessor<int64_t, 2>();
  const auto row = [&](int64_t qr, int64_t qc, int64_t kr, int64_t kc) {
    return rows[qr * 2 + qc][(kr + 1) * 4 + kc + 1];
  };
  EXPECT_EQ(row(0, 1, 2, -1), row(0, 0, 1, 2));
}

TEST(VilPositionBias, WindowsOfOnePatchHaveOneRow) {
  EXPECT_TRUE(at::equal(WindowBiasIndex(1, at::kCPU), at::zeros({1, 9}, at::kLong)));
}

TEST(VilPositionBias, EveryOffsetInAGridHasItsOwnRow) {
  for (int64_t side = 1; side <= 5; ++side) {
    const at::Tensor index = GridBiasIndex(side, at::kCPU);
    const auto rows = index.accessor<int64_t, 2>();
    for (int64_t query = 0; query < side * side; ++query) {
      for (int64_t key = 0; key < side * side; ++key) {
        const int64_t dr = query / side - key / side, dc = query % side - key % side;
        ASSERT_EQ(rows[query][key], (dr + side - 1) * (2 * side - 1) + (dc + side - 1));
      }
    }
    EXPECT_EQ(index.max().item<int64_t>(), (2 * side - 1) * (2 * side - 1) - 1);
  }
}

TEST(VilPositionBias, EachHeadReadsItsColumn) {
  const at::Tensor table = at::arange(6, at::kFloat).view({3, 2});  // rows (0, 1), (2, 3), (4, 5)
  const at::Tensor index = at::tensor({2, 0, 1, 1}, at::kLong).view({2, 2});
  EXPECT_TRUE(at::equal(BiasOfPairs(table, index), at::tensor({4, 0, 2, 2, 5, 1, 3, 3}, at::kFloat).view({2, 2, 2})));
}

}  // namespace longshort::models::position_bias_test
