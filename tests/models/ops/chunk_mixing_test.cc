#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gtest/gtest.h"
#include "models/ops/landmarks/dynamic_projection.h"

namespace longshort::models::cpu::chunk_mixing_test {

TEST(ChunkMixing, MeetsTheReferenceOp) {
  for (const int64_t rank : {1, 3}) {
    constexpr int64_t kHeads = 5, kHeadWidth = 7, kChunk = 6;
    const at::Tensor logits = at::randn({1, kChunk, kHeads * rank}), rows = at::randn({1, kChunk, kHeads * kHeadWidth});
    const at::Tensor expected = MixChunks(ProjectionWeights(logits, kHeads, kChunk), rows)[0];

    std::vector<const float*> logit_rows, value_rows;
    for (int64_t i = 0; i < kChunk; ++i) {
      logit_rows.push_back(logits.const_data_ptr<float>() + i * logits.size(2));
      value_rows.push_back(rows.const_data_ptr<float>() + i * rows.size(2));
    }
    std::vector<float> weights(kChunk * kHeads * rank);
    at::Tensor mixed = at::zeros({rank, 2, kHeads * kHeadWidth});  // every other row belongs to other data
    ChunkWeights(logit_rows, kHeads * rank, weights.data());
    MixChunk(value_rows, weights.data(), kHeads, rank, kHeadWidth, mixed.mutable_data_ptr<float>(),
             2 * kHeads * kHeadWidth);
    EXPECT_LT((mixed.select(1, 0) - expected).abs().max().item<double>(), 1e-6);
    EXPECT_EQ(mixed.select(1, 1).abs().max().item<double>(), 0);
  }
}

}  // namespace longshort::models::cpu::chunk_mixing_test
