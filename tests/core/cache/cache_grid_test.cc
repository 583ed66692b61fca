#include "core/cache/cache_grid.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::core::cache_grid_test {

// The official enwik8 models, evaluated with M = 8192 and L = 256.
models::LanguageModelInfo Enwik8Info() {
  models::LanguageModelInfo info;
  info.layers = 12;
  info.chunk_size = 16;
  info.chunk_rank = 1;
  info.window_length = 512;
  info.memory_length = 8192;
  info.segment_length = 256;
  info.rows_per_page = 64;
  info.vocabulary_size = 208;
  return info;
}

MATCHER_P2(IsSpan, first, end, "") { return arg.first == first && arg.end == end; }

TEST(CacheGrid, ABlockEndsAPageAndAChunk) {
  EXPECT_EQ(CacheGrid(Enwik8Info()).block_tokens(), 64);
  models::LanguageModelInfo info = Enwik8Info();
  info.chunk_size = 48;
  EXPECT_EQ(CacheGrid(info).block_tokens(), 192);
}

// Token 1000 lies in the block from 960 and the segment from 768, whose memory begins at -7424.
TEST(CacheGrid, KeepsWhatTheFirstQueryOfTheBlockSees) {
  const CacheGrid grid(Enwik8Info());
  EXPECT_THAT(grid.KeptAt(kWindowStrip, 1000), IsSpan(7, 16));  // rows 449 .. 999
  EXPECT_THAT(grid.KeptAt(kMemoryStrip, 1000), IsSpan(-8, 1));  // vectors -464 .. 61
  EXPECT_THAT(grid.KeptAt(kSegmentStrip, 1000), IsSpan(0, 1));  // vectors 48 .. 61
}

TEST(CacheGrid, ASequenceThatBeginsHasZeroMemoryOnly) {
  const CacheGrid grid(Enwik8Info());
  EXPECT_THAT(grid.KeptAt(kWindowStrip, 0), IsSpan(-8, 0));
  EXPECT_THAT(grid.KeptAt(kMemoryStrip, 0), IsSpan(-8, 0));
  EXPECT_THAT(grid.KeptAt(kSegmentStrip, 0), IsSpan(0, 0));
}

TEST(CacheGrid, AtASegmentsStartNoVectorOfItIsThere) {
  const PageSpan span = CacheGrid(Enwik8Info()).KeptAt(kSegmentStrip, 1280);
  EXPECT_EQ(span.first, span.end);
  EXPECT_EQ(span.first, 1);  // where vector 80 will lie
}

TEST(CacheGrid, CountsWhatASequenceOfAnyLengthNeeds) {
  const models::CachePages pages = CacheGrid(Enwik8Info()).PagesForSequence();
  EXPECT_EQ(pages.window, 9);  // 511 rows and a block
  // (8192 + 256) / 16 = 528 vectors, and 16, which both begin at a quarter of a page.
  EXPECT_EQ(pages.segment, 9 + 1);
  EXPECT_EQ(pages.open_chunk, 1);
}

// 12.3 times 32,768 rows, which full attention keeps, are 2,664; 16 are the open chunk's.
TEST(CacheGrid, SmallPagesHoldLittleMoreThanTheRowsThatAreSeen) {
  models::LanguageModelInfo info = Enwik8Info();
  info.memory_length = 32768;
  info.rows_per_page = 16;
  const models::CachePages pages = CacheGrid(info).PagesForSequence();
  EXPECT_EQ(pages.window, 33);  // 511 rows and a block of 16
  // (32768 + 256) / 16 = 2064 vectors, and 16.
  EXPECT_EQ(pages.segment, 129 + 1);
}

TEST(CacheGrid, CountsNoMoreThanAShortSequenceFills) {
  const models::CachePages pages = CacheGrid(Enwik8Info()).PagesForSequence(100);
  EXPECT_EQ(pages.window, 2);   // 100 rows
  EXPECT_EQ(pages.segment, 2);  // 6 vectors, in both forms
  EXPECT_EQ(CacheGrid(Enwik8Info()).PagesForSequence(15).segment, 0);
}

// From every position to the end of its block.
TEST(CacheGrid, TheCountIsEnoughWhereverASequenceStandsWhateverTheLengths) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    models::LanguageModelInfo info;
    info.chunk_size = random() % 8 == 0 ? 24 : 1 << random() % 7;
    info.chunk_rank = random() % 5 + 1;
    info.memory_length = info.chunk_size * (random() % 40 + 1);
    info.segment_length = info.chunk_size * (random() % 20 + 1);
    info.rows_per_page = 16 << random() % 3;
    info.window_length = random() % info.memory_length + 1;
    const CacheGrid grid(info);
    const models::CachePages need = grid.PagesForSequence();
    for (int64_t position = 0; position < 3000; position += random() % 7 + 1) {
      const int64_t end = grid.BlockBegin(position) + grid.block_tokens();
      const auto pages = [&](Strip strip) {
        return grid.Pages(strip, position, end).end - std::max<int64_t>(0, grid.KeptAt(strip, position).first);
      };
      ASSERT_LE(pages(kWindowStrip), need.window) << position;
      ASSERT_LE(pages(kMemoryStrip) + pages(kSegmentStrip), need.segment) << position;
    }
  }
}

// 12 * (8192 + 256) = 101,376 tokens, and a whole page of vectors, 1024 tokens, to begin with.
TEST(CacheGrid, RecomputesFromAnExactPlace) {
  const CacheGrid grid(Enwik8Info());
  EXPECT_EQ(grid.RecomputeFrom(1000), 0);
  EXPECT_EQ(grid.RecomputeFrom(101376 + 1023), 0);
  EXPECT_EQ(grid.RecomputeFrom(101376 + 1024), 1024);
  EXPECT_EQ(grid.RecomputeFrom(1000000), 877 * 1024);
}

TEST(StreamsThatFit, AreAsManyAsThereAreAllPagesFor) {
  const models::CachePages five = PagesForStreams(Enwik8Info(), 5);
  EXPECT_EQ(StreamsThatFit(Enwik8Info(), five), 5);
  EXPECT_EQ(StreamsThatFit(Enwik8Info(), five - models::CachePages{.window = 1, .segment = 0, .open_chunk = 0}), 4);
  EXPECT_EQ(StreamsThatFit(Enwik8Info(), five - models::CachePages{.window = 0, .segment = 1, .open_chunk = 0}), 4);
  EXPECT_EQ(StreamsThatFit(Enwik8Info(), five - models::CachePages{.window = 0, .segment = 0, .open_chunk = 1}), 4);
}

models::LanguageModelInfo InfoOf(const models::CachePages& page_bytes) {
  models::LanguageModelInfo info = Enwik8Info();
  info.page_bytes = page_bytes;
  return info;
}

TEST(PagesForBytes, SplitsWhatOpenChunksLeaveAsAFullSequenceNeedsIt) {
  const auto pages =
      PagesForBytes(InfoOf({.window = 1000, .segment = 1000, .open_chunk = 400}), 20 * 19400 + 64 * 400, 64);
  ASSERT_TRUE(pages.ok()) << pages.status();
  EXPECT_EQ(pages->open_chunk, 64 + 20);
  EXPECT_EQ(pages->window, 20 * 9);
  EXPECT_EQ(pages->segment, 20 * 10);
}

TEST(PagesForBytes, GivesOpenChunksAtMostAQuarter) {
  const auto pages = PagesForBytes(InfoOf({.window = 1000, .segment = 1000, .open_chunk = 400}), 48000, 64);
  ASSERT_TRUE(pages.ok()) << pages.status();
  EXPECT_EQ(pages->open_chunk, 30);
  EXPECT_EQ(pages->window, 17);
  EXPECT_EQ(pages->segment, 18);
}

TEST(PagesForBytes, NeverTakesMoreThanTheBytes) {
  const models::LanguageModelInfo info = InfoOf({.window = 997, .segment = 997, .open_chunk = 401});
  for (int64_t bytes = 5000; bytes < 10'000'000; bytes = bytes * 9 / 8) {
    const auto pages = PagesForBytes(info, bytes, 64);
    ASSERT_TRUE(pages.ok()) << pages.status();
    ASSERT_LE(Bytes(*pages, info.page_bytes), bytes);
  }
}

}  // namespace longshort::core::cache_grid_test
