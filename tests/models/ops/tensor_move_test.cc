#include "ATen/Functions.h"
#include "gtest/gtest.h"
#include "models/ops/layers/linear.h"

namespace longshort::models::tensor_move_test {

TEST(TensorMove, ChangesTheTypeOfWhatItIsGiven) {
  at::Tensor tensor = at::full({2}, 1.001), undefined;
  Linear map{.weight = at::ones({2, 2}), .bias = {}};
  LayerNorm norm{.gain = at::ones({2}), .bias = at::zeros({2})};
  TensorMove move(at::kCPU, at::kBFloat16);
  move(tensor, undefined, map, norm);
  EXPECT_TRUE(tensor.equal(at::ones({2}, at::kBFloat16))) << tensor;
  EXPECT_EQ(map.weight.scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm.gain.scalar_type(), at::kBFloat16);
  EXPECT_EQ(norm.bias.scalar_type(), at::kBFloat16);
  EXPECT_FALSE(undefined.defined() || map.bias.defined());
}

TEST(TensorMove, KeepsTypesThatMatter) {
  at::Tensor index = at::arange(3, at::kLong), table = at::ones({3});
  TensorMove(at::kCPU, at::kBFloat16).AsTheyAre(index, table);
  EXPECT_EQ(index.scalar_type(), at::kLong);
  EXPECT_EQ(table.scalar_type(), at::kFloat);

  at::Tensor half = at::ones({2}, at::kBFloat16);
  TensorMove move(at::kCPU);
  move(half, table);
  EXPECT_EQ(half.scalar_type(), at::kBFloat16);
  EXPECT_EQ(table.scalar_type(), at::kFloat);
}

TEST(TensorMove, CopiesNothingThatIsThere) {
  at::Tensor tensor = at::ones({2});
  const void* const before = tensor.const_data_ptr();
  TensorMove move(at::kCPU, at::kFloat);
  move(tensor);
  EXPECT_EQ(tensor.const_data_ptr(), before);
}

TEST(TensorMove, PackedMapsOfOneWeightShareItsPanels) {
  Linear one = {at::ones({64, 64}), {}}, same = one;
  TensorMove move = TensorMove::Packing(at::kChar);
  move(one, same);
  ASSERT_NE(one.packed, nullptr);
  EXPECT_EQ(one.packed, same.packed);
}

TEST(TensorMove, WhatLayersShareStaysShared) {
  at::Tensor one = at::ones({2}), same = one, other = at::ones({2}), in_float = one;
  TensorMove move(at::kCPU, at::kBFloat16);
  move(one, same, other);
  move.AsTheyAre(in_float);
  EXPECT_TRUE(one.is_same(same));
  EXPECT_FALSE(one.is_same(other));
  EXPECT_EQ(one.scalar_type(), at::kBFloat16);
  EXPECT_EQ(in_float.scalar_type(), at::kFloat);
}

TEST(TensorMove, JoinsMapsOfTheSameRowsForAGpuOnly) {
  const Linear first = {.weight = at::randn({3, 4}), .bias = at::randn({3})};
  const Linear second = {.weight = at::randn({2, 4}), .bias = at::randn({2})};
  const at::Tensor rows = at::randn({5, 4});
  TensorMove to_cpu(at::kCPU, at::kFloat), to_gpu = TensorMove::ForGpu(at::kCPU, at::kFloat);
  Linear on_cpu = first;
  EXPECT_FALSE(to_cpu.Join({&on_cpu}).defined());
  Linear one = first, other = second, same_one = first, same_other = second;
  to_gpu(one, other, same_one, same_other);
  const Linear joined = to_gpu.Join({&one, &other});
  EXPECT_EQ(joined.outputs(), 8) << "5, and zeros";
  const at::Tensor outputs = joined(rows);
  EXPECT_TRUE(outputs.narrow(1, 0, 3).allclose(first(rows), 0, 1e-6));
  EXPECT_TRUE(outputs.narrow(1, 3, 2).allclose(second(rows), 0, 1e-6));
  EXPECT_TRUE(outputs.narrow(1, 5, 3).equal(at::zeros({5, 3})));
  EXPECT_TRUE(other.weight.equal(second.weight));
  EXPECT_TRUE(other.weight.is_alias_of(joined.weight)) << "no number is there twice";
  // Layers that share maps share the joined one.
  EXPECT_TRUE(to_gpu.Join({&same_one, &same_other}).weight.is_same(joined.weight));
  EXPECT_TRUE(same_one.weight.is_alias_of(joined.weight));
}

}  // namespace longshort::models::tensor_move_test
