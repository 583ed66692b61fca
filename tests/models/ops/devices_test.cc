// The reference ops create all tensors on the device of their arguments.

#include <vector>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/ops/causal_attention/causal_attention.h"
#include "models/ops/document_attention/document_attention.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/landmarks/dynamic_projection.h"
#include "tests/models/ops/factory_calls.h"

namespace longshort::models::devices_test {

using ::testing::Contains;
using ::testing::IsEmpty;

const at::TensorOptions kFloats = at::TensorOptions(at::kFloat).device(at::kCPU);
at::Tensor Random(at::IntArrayRef shape) { return at::rand(shape, kFloats); }

TEST(FactoriesWithoutDevice, AreFound) {
  EXPECT_THAT(FactoriesWithoutDevice([] { at::arange(3, at::kLong); }), Contains("aten::arange"));
  EXPECT_THAT(FactoriesWithoutDevice([] { at::tensor(std::vector<int64_t>{1}, at::kLong); }), Not(IsEmpty()));
  EXPECT_THAT(FactoriesWithoutDevice([] { at::zeros_like(at::arange(3, kFloats)).to(at::kLong); }), IsEmpty());
}

TEST(AttentionDevices, OfTheCausalOp) {
  const RelativePositions positions = {.window = Random({5, 2, 4}),
                                       .chunk = Random({6, 2, 4}),
                                       .window_bias = Random({2, 4}),
                                       .relative_bias = Random({2, 4})};
  EXPECT_THAT(FactoriesWithoutDevice([&] {
                CausalAttention(Random({1, 8, 2, 4}), Random({1, 12, 2, 4}), Random({1, 12, 2, 4}),
                                Random({1, 4, 2, 4}), Random({1, 4, 2, 4}), /*visible=*/3, /*chunk_size=*/4,
                                /*rank=*/1, positions);
                SinusoidalPositions(Random({4}), 7, 5);
              }),
              IsEmpty());
}

TEST(AttentionDevices, OfTheOpsOfDocuments) {
  const std::vector<int32_t> ids = {1, 2, 0, 3, 4};
  const PackedDocuments packed = PackDocuments({ids}, {.size = 2});
  EXPECT_THAT(FactoriesWithoutDevice([&] {
                const at::Tensor rows = Random({4, 2, 3});
                LongShortAttention1d(packed.documents[0], rows, rows, rows, Random({1, 2, 3}), Random({1, 2, 3}));
                ConvolveValues(packed, rows, Random({2, 3}));
                MixChunks(ProjectionWeights(Random({1, 8, 4}), 2, 4), Random({1, 8, 6}));
              }),
              IsEmpty());
}

TEST(AttentionDevices, OfTheOpOfGrids) {
  for (const int64_t side : {0, 3}) {
    EXPECT_THAT(
        FactoriesWithoutDevice([&] {
          const at::Tensor rows = Random({1, 2, 20, 3}), shared = Random({1, 2, 1, 3});
          LongShortAttention2d(rows, {rows, rows}, {shared, shared}, {.height = 4, .width = 5}, {.side = side}, {});
        }),
        IsEmpty());
  }
}

}  // namespace longshort::models::devices_test
