#include "models/train/example_order.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace longshort::models::example_order_test {

std::vector<int64_t> Examples(const std::vector<Draw>& draws) {
  std::vector<int64_t> examples;
  for (const Draw& draw : draws) examples.push_back(draw.example);
  return examples;
}

TEST(ExampleOrder, EveryEpochHoldsEachExampleOnceInAnOrderOfItsOwn) {
  ExampleOrder order(/*examples=*/12, /*seed=*/7);
  const std::vector<int64_t> first = Examples(order.Batch(0, 12)), second = Examples(order.Batch(1, 12));
  EXPECT_NE(first, second);
  for (std::vector<int64_t> epoch : {first, second}) {
    std::sort(epoch.begin(), epoch.end());
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(epoch[i], i);
  }
}

TEST(ExampleOrder, AStepsBatchDependsOnSeedAndStepOnly) {
  ExampleOrder from_start(/*examples=*/10, /*seed=*/7), resumed(/*examples=*/10, /*seed=*/7);
  for (int64_t step = 0; step < 5; ++step) from_start.Batch(step, 4);
  const std::vector<Draw> expected = from_start.Batch(5, 4), draws = resumed.Batch(5, 4);
  EXPECT_EQ(Examples(draws), Examples(expected));
  EXPECT_EQ(draws[0].number, 20U);  // 5 steps of 4
  EXPECT_NE(Examples(ExampleOrder(10, 8).Batch(0, 10)), Examples(ExampleOrder(10, 7).Batch(0, 10)));
}

TEST(RandomDraws, StreamsOfOneSeedDifferAndRepeat) {
  RandomDraws first(1, 0), again(1, 0), other(1, 1);
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = first.Next();
    EXPECT_EQ(value, again.Next());
    EXPECT_NE(value, other.Next());
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(first.Below(7), 7);
    const double uniform = first.Uniform(-1, 2);
    EXPECT_GE(uniform, -1);
    EXPECT_LT(uniform, 2);
  }
}

}  // namespace longshort::models::example_order_test
