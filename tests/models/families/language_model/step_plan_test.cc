#include "models/families/language_model/step_plan.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::step_plan_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PageId kZero = kZeroPage;

// C = 4, R = 2, W = 6, M = 8, L = 8, pages of 4 rows.
LanguageModelInfo Info() {
  LanguageModelInfo info;
  info.chunk_size = 4;
  info.chunk_rank = 2;
  info.window_length = 6;
  info.memory_length = 8;
  info.segment_length = 8;
  info.rows_per_page = 4;
  info.vocabulary_size = 100;
  return info;
}

//   slice 0   tokens 6 7 8 9 of its stream: fills chunk 1 (4 .. 7, of which 4 and 5 came before), begins chunk 2 and
//   the
//             segment from 8 on
//   slice 1   token 3 of another stream, which fills its first chunk and has no other history
class StepPlanTest : public ::testing::Test {
 protected:
  StepPlanTest() {
    slices_[0].tokens = first_tokens_;
    slices_[0].position = 6;
    slices_[0].segment_start = 0;
    slices_[0].window_pages = {.first = 0, .ids = first_window_};    // rows 1 .. 9
    slices_[0].memory_pages = {.first = -1, .ids = first_memory_};   // vectors -4 .. 3
    slices_[0].segment_pages = {.first = 0, .ids = first_segment_};  // vectors 0 .. 3
    slices_[0].open_chunk = 5;
    slices_[0].logit_rows = 2;
    slices_[1].tokens = second_tokens_;
    slices_[1].position = 3;
    slices_[1].window_pages = {.first = -1, .ids = second_window_};   // rows -2 .. 3
    slices_[1].memory_pages = {.first = -1, .ids = second_memory_};   // vectors -4 .. 1
    slices_[1].segment_pages = {.first = 0, .ids = second_segment_};  // vectors 0, 1
    slices_[1].open_chunk = 2;
    slices_[1].logit_rows = 1;
  }

  const std::vector<int32_t> first_tokens_ = {60, 61, 62, 63}, second_tokens_ = {70};
  const std::vector<PageId> first_window_ = {10, 11, 12}, first_memory_ = {kZero, 20}, first_segment_ = {21};
  const std::vector<PageId> second_window_ = {kZero, 13}, second_memory_ = {kZero, 22}, second_segment_ = {23};
  std::vector<Slice> slices_ = std::vector<Slice>(2);
};

TEST_F(StepPlanTest, SaysOfEveryRowWhatItIsAndWhereItGoes) {
  const StepPlan plan = PlanStep(slices_, Info());
  EXPECT_EQ(plan.rows(), 5);
  EXPECT_THAT(plan.Of(plan.tokens), ElementsAre(60, 61, 62, 63, 70));
  EXPECT_THAT(plan.Of(plan.positions), ElementsAre(6, 7, 8, 9, 3));
  EXPECT_THAT(plan.Of(plan.segment_starts), ElementsAre(0, 0, 8, 8, 0));
  EXPECT_THAT(plan.Of(plan.row_slices), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(plan.Of(plan.window_slots), ElementsAre(11 * 4 + 2, 11 * 4 + 3, 12 * 4, 12 * 4 + 1, 13 * 4 + 3));
  EXPECT_THAT(plan.Of(plan.logit_rows), ElementsAre(2, 3, 4));
}

TEST_F(StepPlanTest, SaysWhichChunksBecomeFullAndWhichRowsWait) {
  const StepPlan plan = PlanStep(slices_, Info());
  EXPECT_EQ(plan.full_chunks(), 2);
  EXPECT_THAT(plan.Of(plan.chunk_ends), ElementsAre(1, 4));
  EXPECT_THAT(plan.Of(plan.chunk_kept), ElementsAre(2, 3));
  EXPECT_THAT(plan.Of(plan.chunk_pages), ElementsAre(5, 2));
  EXPECT_THAT(plan.Of(plan.memory_slots), ElementsAre(20 * 4 + 2, 20 * 4 + 3, 22 * 4, 22 * 4 + 1));
  EXPECT_THAT(plan.Of(plan.segment_slots), ElementsAre(21 * 4 + 2, 21 * 4 + 3, 23 * 4, 23 * 4 + 1));
  EXPECT_THAT(plan.Of(plan.kept_rows), ElementsAre(2, 3));
  EXPECT_THAT(plan.Of(plan.kept_slots), ElementsAre(5 * 4, 5 * 4 + 1));
}

TEST_F(StepPlanTest, HasThePagesOfAllSlices) {
  const StepPlan plan = PlanStep(slices_, Info());
  EXPECT_THAT(plan.Of(plan.window.first_pages), ElementsAre(0, -1));
  EXPECT_THAT(plan.Of(plan.window.first_ids), ElementsAre(0, 3, 5));
  EXPECT_THAT(plan.Of(plan.window.ids), ElementsAre(10, 11, 12, kZero, 13));
  EXPECT_THAT(plan.Of(plan.memory.first_pages), ElementsAre(-1, -1));
  EXPECT_THAT(plan.Of(plan.memory.ids), ElementsAre(kZero, 20, kZero, 22));
  EXPECT_THAT(plan.Of(plan.segment.first_ids), ElementsAre(0, 1, 2));
  EXPECT_THAT(plan.Of(plan.segment.ids), ElementsAre(21, 23));
}

TEST_F(StepPlanTest, ATokenInsideAChunkOnlyWaits) {
  slices_.pop_back();
  slices_[0].tokens = slices_[0].tokens.first(1);
  slices_[0].logit_rows = 0;
  const StepPlan plan = PlanStep(slices_, Info());
  EXPECT_EQ(plan.full_chunks(), 0);
  EXPECT_THAT(plan.Of(plan.memory_slots), IsEmpty());
  EXPECT_THAT(plan.Of(plan.logit_rows), IsEmpty());
  EXPECT_THAT(plan.Of(plan.kept_slots), ElementsAre(5 * 4 + 2));
}

}  // namespace longshort::models::step_plan_test
