#include "tests/rings/ring_pages.h"

#include <algorithm>
#include <random>

#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/fake_language_model.h"

namespace longshort::ring_pages_test {

using testing::ElementsAre;

// The official enwik8 models, evaluated with M = 8192 and L = 256.
models::LanguageModelInfo Enwik8Info() {
  models::LanguageModelInfo info;
  info.chunk_size = 16;
  info.chunk_rank = 1;
  info.window_length = 512;
  info.memory_length = 8192;
  info.segment_length = 256;
  info.rows_per_page = 64;
  info.vocabulary_size = 208;
  return info;
}

TEST(RingsForSequence, CoverWhatASliceSeesHoweverItLiesOnPages) {
  const SequenceRings rings = RingsForSequence(Enwik8Info(), 1);
  EXPECT_EQ(rings.window, 9);   // 512 rows that begin inside a page touch 9
  EXPECT_EQ(rings.memory, 10);  // (8192 + 256) / 16 = 528 vectors
  EXPECT_EQ(rings.segment, 2);  // 256 / 16 = 16 vectors may straddle a page's end
  const models::CachePages pages = PagesForRings(Enwik8Info(), 1);
  EXPECT_EQ(pages.window, 9);
  EXPECT_EQ(pages.segment, 12);
  EXPECT_EQ(pages.open_chunk, 1);
  const SequenceRings of_pieces = RingsForSequence(Enwik8Info(), 256);
  EXPECT_EQ(of_pieces.window, 13);  // 511 + 256 rows
  EXPECT_EQ(of_pieces.memory, 10);  // (8192 + 511) / 16 = 543 vectors
  EXPECT_EQ(of_pieces.segment, 2);  // 511 / 16 = 31 vectors
}

TEST(RingsForSequence, AreNoLongerThanAShortSequenceCanFill) {
  const SequenceRings rings = RingsForSequence(Enwik8Info(), 1, 100);
  EXPECT_EQ(rings.window, 2);  // 100 rows
  EXPECT_EQ(rings.memory, 1);  // 6 vectors
  EXPECT_EQ(rings.segment, 1);
}

TEST(RingsForSequence, NeedNoVectorsForASequenceShorterThanAChunk) {
  const SequenceRings rings = RingsForSequence(Enwik8Info(), 1, 15);
  EXPECT_EQ(rings.window, 1);
  EXPECT_EQ(rings.memory, 0);
  EXPECT_EQ(rings.segment, 0);
}

TEST(RingsForSequence, NeverExceedThoseOfAnEndlessSequence) {
  const SequenceRings endless = RingsForSequence(Enwik8Info(), 64);
  for (int64_t tokens = 1; tokens < 100000; tokens += 61) {
    const SequenceRings rings = RingsForSequence(Enwik8Info(), 64, tokens);
    ASSERT_LE(rings.window, endless.window);
    ASSERT_LE(rings.memory, endless.memory);
    ASSERT_LE(rings.segment, endless.segment);
  }
}

class RingPagesTest : public testing::Test {
 protected:
  models::Slice FilledSlice(RingPages& pages, int64_t position, int64_t segment_start, int64_t count) {
    tokens_.assign(count, 0);
    models::Slice slice;
    slice.tokens = tokens_;
    slice.position = position;
    slice.segment_start = segment_start;
    pages.FillIn(slice);
    return slice;
  }

  std::vector<int32_t> tokens_;
};

// W = 512, M = 8192: all but page 0 of what the first token sees is zero memory.
TEST_F(RingPagesTest, RowsBeforeTheFirstTokenLieOnTheZeroPage) {
  RingPools pools(PagesForRings(Enwik8Info(), 16));
  auto pages = RingPages::Acquire(pools, Enwik8Info(), 16);
  ASSERT_TRUE(pages.ok());
  const models::Slice slice = FilledSlice(*pages, 0, 0, 16);
  EXPECT_EQ(slice.window_pages.first, -8);  // row -511
  ASSERT_EQ(slice.window_pages.ids.size(), 9u);
  EXPECT_THAT(slice.window_pages.ids.first(8), testing::Each(models::kZeroPage));
  EXPECT_GE(slice.window_pages.ids[8], 0);
  EXPECT_EQ(slice.memory_pages.first, -8);  // vector -512
  ASSERT_EQ(slice.memory_pages.ids.size(), 9u);
  EXPECT_GE(slice.memory_pages.ids[8], 0);  // the slice finishes chunk 0
  EXPECT_EQ(slice.segment_pages.first, 0);
  EXPECT_EQ(slice.segment_pages.ids.size(), 1u);
}

TEST_F(RingPagesTest, ASegmentWithoutAFinishedChunkNeedsNoSegmentPage) {
  RingPools pools(PagesForRings(Enwik8Info(), 16));
  auto pages = RingPages::Acquire(pools, Enwik8Info(), 16);
  ASSERT_TRUE(pages.ok());
  const models::Slice slice = FilledSlice(*pages, 256, 256, 15);
  EXPECT_TRUE(slice.segment_pages.ids.empty());
  EXPECT_EQ(slice.memory_pages.ids.size(), 9u);  // vectors -496 .. 15
}

// Rows 64*8 .. 64*17: ten pages in a ring of nine.
//   page of the grid   7  8 ...  15  16
//   ring               7  8 ...   6   7
TEST_F(RingPagesTest, PagesComeRoundAfterARing) {
  RingPools pools(PagesForRings(Enwik8Info(), 1));
  auto pages = RingPages::Acquire(pools, Enwik8Info(), 1);
  ASSERT_TRUE(pages.ok());
  const models::Slice slice = FilledSlice(*pages, 1024, 1024, 1);  // sees rows 513 .. 1024
  ASSERT_EQ(slice.window_pages.first, 8);
  ASSERT_EQ(slice.window_pages.ids.size(), 9u);  // pages 8 .. 16 are all different
  std::vector<models::PageId> distinct(slice.window_pages.ids.begin(), slice.window_pages.ids.end());
  EXPECT_THAT(distinct, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));

  const models::Slice next = FilledSlice(*pages, 1088, 1024, 1);  // sees rows 577 .. 1088, pages 9 .. 17
  EXPECT_EQ(next.window_pages.first, 9);
  EXPECT_EQ(next.window_pages.ids.back(), distinct.front());  // page 17 lies where page 8 lay
}

TEST_F(RingPagesTest, AreGivenBackAtTheEnd) {
  RingPools pools(PagesForRings(Enwik8Info(), 1));
  {
    auto pages = RingPages::Acquire(pools, Enwik8Info(), 1);
    ASSERT_TRUE(pages.ok());
    const RingPages moved = *std::move(pages);
    EXPECT_EQ(pools.window.used(), 9);
    EXPECT_EQ(pools.segment.used(), 12);
    EXPECT_EQ(pools.open_chunk.used(), 1);
  }
  EXPECT_EQ(pools.window.used() + pools.segment.used() + pools.open_chunk.used(), 0);
  EXPECT_TRUE(pools.CheckInvariants().ok());
}

TEST_F(RingPagesTest, TakeNothingWhenOneKindIsShort) {
  RingPools pools({.window = 9, .segment = 11, .open_chunk = 1});
  EXPECT_EQ(RingPages::Acquire(pools, Enwik8Info(), 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pools.window.used() + pools.segment.used() + pools.open_chunk.used(), 0);
  EXPECT_TRUE(pools.CheckInvariants().ok());
}

// Runs `history` in random slices through the fake model, with other sequences' pages lying between its own, and
// compares the last row of every slice with the logits that know no pages.
absl::Status RunInRandomSlices(const models::LanguageModelInfo& info, int64_t length, std::mt19937& random) {
  core::FakeLanguageModel model(info);
  const int64_t longest = random() % 2 == 0 ? 5 : 300;
  const models::CachePages per_sequence = PagesForRings(info, longest);
  const models::CachePages capacity{.window = 2 * per_sequence.window,
                                    .segment = 2 * per_sequence.segment,
                                    .open_chunk = 2 * per_sequence.open_chunk};
  RingPools pools(capacity);
  LS_RETURN_IF_ERROR(model.AllocateCache(capacity));
  LS_ASSIGN_OR_RETURN(const RingPages other, RingPages::Acquire(pools, info, longest, random() % 300 + 1));
  LS_ASSIGN_OR_RETURN(RingPages pages, RingPages::Acquire(pools, info, longest, length));

  std::vector<int32_t> history(length);
  for (int32_t& token : history) token = static_cast<int32_t>(random() % info.vocabulary_size);
  for (int64_t position = 0; position < length;) {
    const int64_t count = std::min<int64_t>(length - position, random() % longest + 1);
    models::Slice slice;
    slice.tokens = absl::MakeConstSpan(history).subspan(position, count);
    slice.position = position;
    slice.segment_start = position / info.segment_length * info.segment_length;
    slice.logit_rows = 1;
    pages.FillIn(slice);
    LS_ASSIGN_OR_RETURN(const models::StepResult result, model.Step({slice}));
    position += count;
    const std::vector<float> expected = model.LogitsAfter(absl::MakeConstSpan(history).first(position));
    if (!std::equal(expected.begin(), expected.end(), result.logits.begin())) {
      return absl::InternalError("other logits than without pages");
    }
  }
  return absl::OkStatus();
}

TEST_F(RingPagesTest, HoldWhatEveryQuerySeesWhateverTheLengthsAndTheCut) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    models::LanguageModelInfo info;
    info.chunk_size = 1 << random() % 6;
    info.chunk_rank = random() % 5 + 1;
    info.memory_length = info.chunk_size * (random() % 40 + 1);
    info.segment_length = info.chunk_size * (random() % 20 + 1);
    info.rows_per_page = 16 << random() % 3;
    info.window_length = random() % info.memory_length + 1;
    info.vocabulary_size = 7;
    const int64_t length = random() % 700 + 1;
    const absl::Status status = RunInRandomSlices(info, length, random);
    ASSERT_TRUE(status.ok()) << status << ": C " << info.chunk_size << " R " << info.chunk_rank << " W "
                             << info.window_length << " M " << info.memory_length << " L " << info.segment_length
                             << " length " << length;
  }
}

}  // namespace longshort::ring_pages_test
