// The graph shape that a step takes, and its padding.

#include "models/families/language_model/gpu_step.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/families/language_model/random_decoder.h"

namespace longshort::models::gpu_step_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// Steps of streams that have only the pages that they need.
class GpuStepTest : public ::testing::Test {
 protected:
  // Slices with these numbers of tokens, of streams at position `position`.
  StepPlan PlanOf(const std::vector<int64_t>& lengths, int64_t position = 0) {
    std::vector<Slice> slices;
    for (const int64_t length : lengths) {
      Slice& slice = slices.emplace_back();
      slice.tokens = absl::MakeConstSpan(tokens_).first(length);
      slice.position = position;
      slice.window_pages = {.first = 0, .ids = absl::MakeConstSpan(window_).first((position + length) / 64 + 1)};
      slice.memory_pages = {.first = -1, .ids = absl::MakeConstSpan(memory_).first((position + length) / 256 + 2)};
      slice.segment_pages = {.first = 0, .ids = absl::MakeConstSpan(segment_).first((position + length) / 256 + 1)};
      slice.logit_rows = 1;
    }
    return PlanStep(slices, info_);
  }
  // The first fitting shape up to 512 rows; empty if there is none.
  StepShape ShapeFor(const StepPlan& plan) const {
    const StepTiles tiles(plan);
    const auto shape =
        std::find_if(shapes_.begin(), shapes_.end(), [&](const StepShape& some) { return FitsIn(plan, tiles, some); });
    return shape == shapes_.end() ? StepShape{} : *shape;
  }
  static std::vector<int64_t> NumbersOf(const GpuStep& step, const StepPlan::Array& array) {
    const auto numbers = step.plan.Of(array);
    return {numbers.begin(), numbers.end()};
  }

  const LanguageModelConfig config_ = SmallConfig();  // C = 4, R = 1
  const LanguageModelInfo info_ = [this] {
    LanguageModelInfo info = InfoOf(config_);
    info.rows_per_page = 64;
    return info;
  }();
  const std::vector<StepShape> shapes_ = ShapesOfGraphs(config_, 512);
  const std::vector<int32_t> tokens_ = std::vector<int32_t>(600, 9);
  const std::vector<PageId> window_ = std::vector<PageId>(12, 3), memory_ = {kZeroPage, 5, 6, 7}, segment_ = {8, 9, 10};
};

TEST_F(GpuStepTest, TakesTheSmallestShapeThatItFitsIn) {
  const StepShape decode = ShapeFor(PlanOf({1, 1, 1}));
  EXPECT_EQ(decode.rows, 4);
  EXPECT_EQ(decode.full_chunks, 0);
  EXPECT_EQ(decode.tiles, 0);

  const StepShape ends = ShapeFor(PlanOf({1, 1, 1}, 3));
  EXPECT_EQ(ends.rows, 4);
  EXPECT_EQ(ends.full_chunks, 4) << "all rows may end their chunks";
  EXPECT_EQ(ends.vectors, 4);

  const StepShape prompt = ShapeFor(PlanOf({1, 70}));
  EXPECT_EQ(prompt.rows, 96);
  EXPECT_EQ(prompt.single_rows, 48) << "half of the rows may decode beside a prompt";
  EXPECT_GE(prompt.tiles, 6) << "70 tokens are of 6 segments";
  EXPECT_EQ(ShapeFor(PlanOf({70})).single_rows, 0);
  EXPECT_EQ(ShapeFor(PlanOf({512})).rows, 512);
  EXPECT_EQ(ShapeFor(PlanOf({513})).rows, 0);
  EXPECT_EQ(ShapeFor(PlanOf(std::vector<int64_t>(129, 1))).rows, 192);
}

TEST_F(GpuStepTest, AStepWithMorePagesThanAShapeHasRoomForHasNone) {
  StepPlan plan = PlanOf({1});
  EXPECT_EQ(ShapeFor(plan).rows, 1);
  plan.memory.ids.size = 600 * ShapeFor(plan).page_ids;
  EXPECT_EQ(ShapeFor(plan).rows, 0);
}

TEST_F(GpuStepTest, EveryRowOfAShapeMayEndItsChunk) {
  EXPECT_EQ(ShapeFor(PlanOf(std::vector<int64_t>(512, 1), 3)).full_chunks, 512);
}

TEST_F(GpuStepTest, MoreSingleRowsBesideATileThanHalfOfTheRowsHaveNoShape) {
  std::vector<int64_t> lengths(256, 1);
  lengths.push_back(8);
  EXPECT_EQ(ShapeFor(PlanOf(lengths)).rows, 512) << "384 rows have room for 192 single ones";
  lengths.push_back(1);
  EXPECT_EQ(ShapeFor(PlanOf(lengths)).rows, 0);
}

// A tile has at least 8 rows of a prompt, so a shape has room for all.
TEST_F(GpuStepTest, EveryShapeHasRoomForTheTilesOfAsManyRows) {
  for (int64_t length = 8; length <= 512; ++length) {
    for (const int64_t position : {0, 5, 11}) {
      EXPECT_GE(ShapeFor(PlanOf({length}, position)).rows, length) << length << " tokens at " << position;
    }
  }
}

// Streams at any position, each with all the pages that its window, memory and segment may use.
TEST_F(GpuStepTest, EveryShapeHasRoomForThePagesOfAsManyStreams) {
  LanguageModelConfig config = config_;
  config.window_length = 200;
  config.memory_length = 2000;
  config.segment_length = 400;
  LanguageModelInfo info = InfoOf(config);
  info.rows_per_page = 64;
  const std::vector<PageId> ids(20, 1);
  // The pages of rows or vectors `first` .. `end`-1.
  const auto pages = [&](int64_t first, int64_t end) {
    const int64_t page = first / 64, count = end > first ? (end - 1) / 64 + 1 - page : 0;
    return PageRange{.first = page, .ids = absl::MakeConstSpan(ids).first(count)};
  };
  const std::vector<StepShape> shapes = ShapesOfGraphs(config, 8);
  for (int64_t position = 4000; position < 4400; ++position) {
    std::vector<Slice> slices(8);
    for (Slice& slice : slices) {
      const int64_t segment = position / 400 * 400, vectors = (position + 1) / 4;
      slice.tokens = absl::MakeConstSpan(tokens_).first(1);
      slice.position = position;
      slice.segment_start = segment;
      slice.window_pages = pages(position - 199, position + 1);
      slice.memory_pages = pages((segment - 2000) / 4, vectors);
      slice.segment_pages = pages(segment / 4, vectors);
      slice.logit_rows = 1;
    }
    const StepPlan plan = PlanStep(slices, info);
    const StepTiles tiles(plan);
    ASSERT_TRUE(std::any_of(shapes.begin(), shapes.end(), [&](const auto& shape) {
      return FitsIn(plan, tiles, shape);
    })) << position;
  }
}

TEST_F(GpuStepTest, EveryStepOfAShapeHasItsArraysAtTheSamePlaces) {
  const StepPlan plan = PlanOf({1, 2}, 2);
  const StepShape shape = ShapeFor(plan);
  const GpuStep step = Pad(plan, StepTiles(plan), shape), empty = Pad({}, StepTiles({}), shape);
  const auto expect_same = [](const StepPlan::Array& a, const StepPlan::Array& b) {
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.size, b.size);
  };
  for (StepPlan::Array StepPlan::*const array :
       {&StepPlan::tokens, &StepPlan::positions, &StepPlan::segment_starts, &StepPlan::row_slices,
        &StepPlan::window_slots, &StepPlan::kept_rows, &StepPlan::kept_slots, &StepPlan::chunk_ends,
        &StepPlan::chunk_kept, &StepPlan::chunk_pages, &StepPlan::memory_slots, &StepPlan::segment_slots,
        &StepPlan::logit_rows}) {
    expect_same(step.plan.*array, empty.plan.*array);
  }
  for (StepPlan::PageTables StepPlan::*const table : {&StepPlan::window, &StepPlan::memory, &StepPlan::segment}) {
    expect_same((step.plan.*table).first_pages, (empty.plan.*table).first_pages);
    expect_same((step.plan.*table).first_ids, (empty.plan.*table).first_ids);
    expect_same((step.plan.*table).ids, (empty.plan.*table).ids);
  }
  expect_same(step.single_rows, empty.single_rows);
  expect_same(step.tiles, empty.tiles);
}

TEST_F(GpuStepTest, WhatIsPaddedIsWrittenNowhereAndAttendsToNothing) {
  const StepPlan plan = PlanOf({1, 2}, 2);  // the second slice ends a chunk
  const GpuStep step = Pad(plan, StepTiles(plan), ShapeFor(plan));
  EXPECT_THAT(NumbersOf(step, step.plan.tokens), ElementsAre(9, 9, 9, 0));
  EXPECT_THAT(NumbersOf(step, step.plan.positions), ElementsAre(2, 2, 3, 0));
  EXPECT_THAT(NumbersOf(step, step.plan.window_slots), ElementsAre(3 * 64 + 2, 3 * 64 + 2, 3 * 64 + 3, -1));
  EXPECT_THAT(NumbersOf(step, step.plan.kept_rows), ElementsAre(0, -1, -1, -1));
  EXPECT_THAT(NumbersOf(step, step.plan.chunk_ends), ElementsAre(2, -1, -1, -1));
  EXPECT_THAT(NumbersOf(step, step.plan.memory_slots), ElementsAre(5 * 64, -1, -1, -1));
  EXPECT_THAT(NumbersOf(step, step.plan.segment_slots), ElementsAre(8 * 64, -1, -1, -1));
  EXPECT_THAT(NumbersOf(step, step.plan.logit_rows), ElementsAre(0, 2, 0, 0));
  EXPECT_THAT(NumbersOf(step, step.single_rows), ElementsAre(0, 1, 2, -1));
  EXPECT_FALSE(step.plan.are_all_logits_wanted);
  const GpuStep empty = Pad({}, StepTiles({}), shapes_.back());
  for (const StepPlan::Array& array : {empty.plan.window_slots, empty.plan.kept_rows, empty.plan.chunk_ends,
                                       empty.plan.memory_slots, empty.plan.segment_slots}) {
    EXPECT_THAT(NumbersOf(empty, array), Each(-1));
  }
  EXPECT_THAT(NumbersOf(empty, empty.tiles), Each(0));
}

// An unused tile has 0 rows.
TEST_F(GpuStepTest, ARowThatDecodesBesideATileStaysSingle) {
  const StepPlan plan = PlanOf({1, 8});
  const GpuStep step = Pad(plan, StepTiles(plan), ShapeFor(plan));
  std::vector<int64_t> tiles = {1, 8}, single_rows = {0};
  tiles.resize(2 * step.tile_count());
  single_rows.resize(8, -1);
  EXPECT_THAT(NumbersOf(step, step.tiles), ElementsAreArray(tiles));
  EXPECT_THAT(NumbersOf(step, step.single_rows), ElementsAreArray(single_rows));
}

// The ids of all tables are one array, which is uploaded last.
TEST_F(GpuStepTest, EverySliceFindsItsPages) {
  const StepPlan plan = PlanOf({1, 2}, 2);
  const GpuStep step = Pad(plan, StepTiles(plan), ShapeFor(plan));
  for (StepPlan::PageTables StepPlan::*const table : {&StepPlan::window, &StepPlan::memory, &StepPlan::segment}) {
    const StepPlan::PageTables &from = plan.*table, &to = step.plan.*table;
    for (int64_t slice = 0; slice < 2; ++slice) {
      const auto ids = [&](const StepPlan& of, const StepPlan::PageTables& table) {
        const auto first_ids = of.Of(table.first_ids);
        std::vector<int64_t> found;
        for (int64_t i = first_ids[slice]; i < first_ids[slice + 1]; ++i)
          found.push_back(of.numbers[table.ids.first + i]);
        return found;
      };
      EXPECT_EQ(ids(step.plan, to), ids(plan, from));
      EXPECT_EQ(step.plan.Of(to.first_pages)[slice], plan.Of(from.first_pages)[slice]);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(step.plan.numbers.size()), step.plan.window.ids.first + 2 * (1 + 2 + 1));
}

}  // namespace longshort::models::gpu_step_test
