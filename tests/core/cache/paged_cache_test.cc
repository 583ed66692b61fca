// Room, parking, forks, going back and beginning in the middle.

#include "core/cache/paged_cache.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/cache/cache_harness.h"

namespace longshort::core::cache_paged_cache_test {

using testing::HasSubstr;

// A sequence of any length: 2 window pages, 2 of 384 tokens' 24 vectors, 2 of the segment's, and its open chunk.
const models::CachePages kOneSequence = CacheGrid(DrawnInfo()).PagesForSequence();

TEST(PagedCache, AdmitsAsManyAsCanHaveAllTheyMayNeed) {
  CacheHarness harness(kOneSequence * 2);
  const auto first = harness.Begin(Text(10, 1), 10000);
  EXPECT_TRUE(harness.cache->FitsNow(10000));
  const auto second = harness.Begin(Text(10, 2), 10000);
  EXPECT_FALSE(harness.cache->FitsNow(10000));
  EXPECT_FALSE(harness.cache->FitsNow(1));
  EXPECT_TRUE(harness.cache->CheckFits(10000).ok());
  EXPECT_EQ(harness.cache->Begin(Text(10, 3), 9, 10).status().code(), absl::StatusCode::kUnavailable);
}

TEST(PagedCache, NamesTheBytesOfWhatNeverFits) {
  models::CachePages capacity = kOneSequence;
  --capacity.window;
  CacheHarness harness(capacity);
  const absl::Status never = harness.cache->CheckFits(10000);
  EXPECT_EQ(never.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(never.message()), HasSubstr("a sequence of 10000 tokens needs 2688 bytes of cache"));
  EXPECT_THAT(std::string(never.message()), HasSubstr("the cache has 2176"));
  EXPECT_TRUE(harness.cache->CheckFits(64).ok());
}

TEST(PagedCache, WhatIsKeptCountsAsFree) {
  CacheHarness harness(kOneSequence);
  for (int32_t seed = 1; seed < 5; ++seed) {
    EXPECT_TRUE(harness.cache->FitsNow(10000));
    harness.ReadAndEnd(Text(300, seed));
  }
}

// A full cache: each sequence reads to the end of its block at once, but not into the next.
TEST(PagedCache, ASliceNeverTakesWhatOthersReserved) {
  CacheHarness harness(kOneSequence * 2);
  const Tokens text = Text(1000, 1), other = Text(1000, 2);
  const auto first = harness.Begin(text);
  EXPECT_EQ(first->MaxTokens(150), 150);  // there is room for a third page
  const auto second = harness.Begin(other);
  EXPECT_EQ(first->MaxTokens(150), 128);  // its own two pages
  harness.Read(*first, text, 130);
  EXPECT_EQ(first->MaxTokens(150), 62);
  harness.Read(*second, other);
  harness.Read(*first, text);
}

TEST(PagedCache, RunningSequencesSharePagesAndCopyTheOnesTheyWrite) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(320, 1);
  const auto first = harness.Begin(text, 1000);
  harness.Read(*first, text);
  const Tokens more = Text(1000, 1);
  const models::CachePages before = harness.cache->state().in_use;
  const auto second = harness.Begin(more, 0);
  EXPECT_EQ(second->position(), 320);
  EXPECT_EQ(harness.cache->state().in_use.window, before.window);        // the last page, whole
  EXPECT_EQ(harness.cache->state().in_use.segment, before.segment + 2);  // both have 20 of 64 rows
  EXPECT_EQ(harness.cache->state().counters.copied_pages, 2);
  const Tokens other = Text(600, 7, text);
  harness.Read(*second, more);
  harness.Read(*first, other);
}

// With not a page to spare the copies are made in place of what the index has.
TEST(PagedCache, APageThatOnlyTheIndexHoldsIsTakenOverWhenThereIsNoneForACopy) {
  const Tokens text = Text(320, 1);
  CacheHarness harness(kOneSequence + models::CachePages{.window = 0, .segment = 0, .open_chunk = 0});
  harness.ReadAndEnd(text);
  const auto sequence = harness.Begin(Text(300, 2, text));
  EXPECT_EQ(sequence->position(), 320);
  harness.Read(*sequence, Text(300, 2, text));
}

TEST(PagedCache, AParkedSequenceGoesOnInTheMiddleOfAChunk) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(400, 1);
  auto sequence = harness.Begin(text);
  harness.Read(*sequence, text, 203);
  const ParkedId id = harness.cache->Park(std::move(sequence));
  EXPECT_EQ(harness.cache->state().in_use.window, 0);
  EXPECT_EQ(harness.cache->state().reserved.window, 0);
  EXPECT_EQ(harness.cache->state().parked_sequences, 1);
  EXPECT_EQ(harness.cache->Export(id)->position, 203);
  auto resumed = harness.cache->Resume(id, 400);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ((*resumed)->reused_tokens(), 203);
  EXPECT_FALSE(harness.cache->IsParked(id));
  harness.Read(**resumed, text);
}

TEST(PagedCache, AParkedSequenceStaysParkedUntilItFits) {
  CacheHarness harness(kOneSequence);
  const Tokens text = Text(100, 1);
  auto sequence = harness.Begin(text);
  harness.Read(*sequence, text, 70);
  const ParkedId id = harness.cache->Park(std::move(sequence));
  auto other = harness.Begin(Text(1, 2), 1000);
  EXPECT_FALSE(harness.cache->IsParked(id));  // its open chunk's page was wanted
  EXPECT_EQ(harness.cache->Resume(id, 100).status().code(), absl::StatusCode::kNotFound);

  CacheHarness roomy(kOneSequence + models::CachePages{.window = 2, .segment = 2, .open_chunk = 1});
  sequence = roomy.Begin(text);
  roomy.Read(*sequence, text, 70);
  const ParkedId kept = roomy.cache->Park(std::move(sequence));
  other = roomy.Begin(Text(1, 2), 10000);
  EXPECT_EQ(roomy.cache->Resume(kept, 10000).status().code(), absl::StatusCode::kUnavailable);
  other.reset();
  EXPECT_TRUE(roomy.cache->Resume(kept, 10000).ok());
}

TEST(PagedCache, ParkedSequencesGoAsAWholeTheLeastRecentlyUsedFirst) {
  CacheHarness harness({.window = 100, .segment = 100, .open_chunk = 3});
  std::vector<ParkedId> ids;
  for (int32_t seed = 0; seed < 3; ++seed) {
    auto sequence = harness.Begin(Text(50, seed));
    harness.Read(*sequence, Text(50, seed));
    ids.push_back(harness.cache->Park(std::move(sequence)));
  }
  EXPECT_TRUE(harness.cache->Export(ids[0]).ok());  // uses it
  const auto other = harness.Begin(Text(1, 9));     // its open chunk costs the second
  EXPECT_TRUE(harness.cache->IsParked(ids[0]));
  EXPECT_FALSE(harness.cache->IsParked(ids[1]));
  EXPECT_TRUE(harness.cache->IsParked(ids[2]));
  EXPECT_EQ(harness.cache->state().counters.evicted_parked, 1);
}

//   [0 .. 191]──┬──[.. 502]  first
//   [0..49]─ ─ ─┘ └──[.. 502]  second
TEST(PagedCache, ASequenceGoesOnBehindWhatAnotherHasReadMeanwhile) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(203, 1);
  const auto first = harness.Begin(text, 300), second = harness.Begin(text, 300);
  const auto third = *harness.cache->Begin(text, 127, 203);  // it wants the logits of the second block's end
  harness.Read(*second, text, 50);
  EXPECT_EQ(*harness.cache->SkipRead(*second, text, 202), 0);
  harness.Read(*first, text);
  EXPECT_EQ(*harness.cache->SkipRead(*third, text, 127), 64);
  EXPECT_EQ(*harness.cache->SkipRead(*second, text, 202), 192 - 50);
  EXPECT_EQ(*harness.cache->SkipRead(*second, text, 202), 0);
  EXPECT_EQ(second->position(), 192);
  EXPECT_EQ(harness.cache->state().counters.reused_tokens, 64 + 192 - 50);
  harness.Read(*first, Text(300, 2, text));
  harness.Read(*second, Text(300, 3, text));
}

TEST(PagedCache, ASequenceSkipsNothingOfAnotherText) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(203, 1), other = Text(200, 2, Text(64, 1));
  const auto first = harness.Begin(text), second = harness.Begin(other);
  harness.Read(*first, text);
  EXPECT_EQ(*harness.cache->SkipRead(*second, other, 263), 64);
  harness.Read(*second, other);
}

int64_t blocks_hashed = 0;
uint64_t CountingHash(uint64_t history, absl::Span<const int32_t> tokens) {
  ++blocks_hashed;
  return HashOfBlock(history, tokens);
}

// A text of 256 blocks was read with room for 20 pages of the window, and is read again: a search at each block would
// look at those that follow, 256 * 255 / 2 in all.
TEST(PagedCache, ALongTextOfWhichMostIsGoneIsNotSearchedAtEveryBlock) {
  CacheHarness harness({.window = 20, .segment = 1000, .open_chunk = 10}, DrawnInfo(), CountingHash);
  const Tokens shared = Text(64 * 256, 1), text = Text(100, 2, shared);
  harness.ReadAndEnd(Text(640, 3, shared));
  harness.ReadAndEnd(Text(640, 4));
  const auto sequence = harness.Begin(text);
  ASSERT_EQ(sequence->position(), 0);
  blocks_hashed = 0;
  for (int64_t end = 64; end <= 64 * 256; end += 64) {
    EXPECT_EQ(*harness.cache->SkipRead(*sequence, text, static_cast<int64_t>(text.size()) - 1), 0);
    harness.Read(*sequence, text, end);
  }
  EXPECT_LT(blocks_hashed, 256 * 12);  // one each to be read, and a search of n blocks after n/8
}

// The same, but another sequence reads the text first. The second may read an eighth of the rest meanwhile.
TEST(PagedCache, WhatOthersReadOfALongTextOfWhichMostWasGoneIsFound) {
  CacheHarness harness({.window = 20, .segment = 1000, .open_chunk = 10}, DrawnInfo(), CountingHash);
  const Tokens shared = Text(64 * 256, 1), text = Text(100, 2, shared);
  harness.ReadAndEnd(Text(640, 3, shared));
  harness.ReadAndEnd(Text(640, 4));
  const auto first = harness.Begin(text), second = harness.Begin(text);
  const auto max = static_cast<int64_t>(text.size()) - 1;
  for (int64_t end = 64; end <= 64 * 256; end += 64) {
    harness.Read(*first, text, end);
    ASSERT_TRUE(harness.cache->SkipRead(*second, text, max).ok());
    EXPECT_GE(second->position(), end - 64 * (256 / 8 + 1));
  }
  EXPECT_EQ(second->position(), 64 * 256);
}

// 32,768 blocks are two texts of 11,000 blocks, and some; that of the one that runs comes on top.
TEST(PagedCache, LongTextsAreForgottenWhenTheIndexIsFullThoughThereArePages) {
  CacheHarness harness(kPlenty);
  const auto text = [](int32_t seed) { return Text(64 * 11000, seed); };
  for (int32_t seed = 1; seed <= 6; ++seed) {
    const Tokens tokens = text(seed);
    std::unique_ptr<CachedSequence> sequence = harness.Begin(tokens);
    for (int64_t at = 0; at < 64 * 11000; at += 64) {
      models::Slice slice;
      slice.tokens = absl::MakeConstSpan(tokens).subspan(at, 64);
      ASSERT_TRUE(sequence->FillIn(slice).ok());
      sequence->OnRead(slice.tokens);
    }
    if (seed == 2) harness.cache->Park(std::move(sequence));  // goes in its turn
  }
  EXPECT_TRUE(harness.cache->CheckInvariants().ok());
  EXPECT_EQ(harness.cache->state().parked_sequences, 0);
  for (int32_t seed = 1; seed <= 6; ++seed) {
    EXPECT_EQ(harness.Begin(Text(1, 7, text(seed)))->position(), seed > 3 ? 64 * 11000 : 0) << seed;
  }
}

TEST(PagedCache, ADroppedSequenceLeavesItsBlocksBehind) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(203, 1);
  auto sequence = harness.Begin(text);
  harness.Read(*sequence, text);
  const ParkedId id = harness.cache->Park(std::move(sequence));
  harness.cache->RemoveParked(id);
  harness.cache->RemoveParked(id);
  EXPECT_EQ(harness.cache->state().parked_sequences, 0);
  EXPECT_EQ(harness.cache->state().idle.open_chunk, 0);
  EXPECT_EQ(harness.ReadAndEnd(text), 192);
}

// Room for two texts of one window page each.
TEST(PagedCache, WhatADroppedSequenceLeavesBehindWasUsedLastWhenItWasParked) {
  CacheHarness harness({.window = 2, .segment = 100, .open_chunk = 10});
  std::vector<ParkedId> ids;
  for (int32_t seed = 1; seed <= 2; ++seed) {
    auto sequence = harness.Begin(Text(64, seed));
    harness.Read(*sequence, Text(64, seed));
    ids.push_back(harness.cache->Park(std::move(sequence)));
  }
  harness.cache->RemoveParked(ids[0]);
  harness.ReadAndEnd(Text(64, 3));
  EXPECT_TRUE(harness.cache->IsParked(ids[1]));
}

TEST(PagedCache, WhatAnEvictedSequenceLeavesBehindGoesNext) {
  CacheHarness harness({.window = 2, .segment = 100, .open_chunk = 10});
  auto sequence = harness.Begin(Text(64, 1));
  harness.Read(*sequence, Text(64, 1));
  harness.cache->Park(std::move(sequence));
  harness.ReadAndEnd(Text(64, 2));
  harness.ReadAndEnd(Text(64, 3));
  EXPECT_EQ(harness.cache->state().counters.evicted_parked, 1);
  EXPECT_EQ(harness.ReadAndEnd(Text(65, 2)), 64);
}

// A block of 4096 tokens keeps 16 KiB of them; all blocks may take 16 MiB.
TEST(PagedCache, TheIndexIsBoundedByWhatItsBlocksTake) {
  models::LanguageModelInfo info = DrawnInfo();
  info.chunk_size = info.memory_length = info.segment_length = 4096;
  CacheHarness harness({.window = 10'000, .segment = 10'000, .open_chunk = 10}, info);
  for (int text = 0; text < 1500; ++text) {
    Tokens tokens(4096);
    tokens[0] = text;
    const auto sequence = harness.Begin(tokens);
    models::Slice slice;
    slice.tokens = tokens;
    ASSERT_TRUE(sequence->FillIn(slice).ok());
    sequence->OnRead(tokens);
  }
  EXPECT_LE(harness.cache->state().ends * 16, 16 << 10);
  EXPECT_GE(harness.cache->state().ends * 16, 14 << 10);
}

TEST(PagedCache, RollsBackWithinTheOpenChunkAndToAChunksBegin) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(300, 1);
  const auto sequence = harness.Begin(text);
  harness.Read(*sequence, text, 252);
  EXPECT_EQ(*sequence->RollBack(252), 252);
  EXPECT_EQ(*sequence->RollBack(243), 243);
  Tokens other = Text(20, 2, Tokens(text.begin(), text.begin() + 243));
  harness.Read(*sequence, other, 250);
  EXPECT_EQ(*sequence->RollBack(235), 224);  // the chunk's rows are mixed already, so it is read again
  other = Text(100, 3, Tokens(text.begin(), text.begin() + 224));
  harness.Read(*sequence, other);
}

TEST(PagedCache, RollsBackToABlockThatIsStillThere) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(500, 1);
  const auto sequence = harness.Begin(text, 500);
  harness.Read(*sequence, text);
  EXPECT_EQ(*sequence->RollBack(300), 256);
  EXPECT_EQ(sequence->position(), 256);
  harness.Read(*sequence, Text(400, 2, Tokens(text.begin(), text.begin() + 256)));
  EXPECT_EQ(harness.ReadAndEnd(text), 448);  // what was taken back can still be found
}

TEST(PagedCache, RollsBackToTheBeginIfNothingElseIsThere) {
  CacheHarness harness(kOneSequence);
  const Tokens text = Text(1000, 1);
  const auto sequence = harness.Begin(text);
  harness.Read(*sequence, text);
  EXPECT_EQ(*sequence->RollBack(500), 0);
  harness.Read(*sequence, text);
}

// Two layers that see 384 tokens back.
TEST(PagedCache, DoesNotRollBackFurtherThanReadingAgainWouldBegin) {
  CacheHarness harness(kOneSequence);
  const Tokens text = Text(4000, 1);
  const auto sequence = harness.Begin(text);
  harness.Read(*sequence, text);
  EXPECT_EQ(sequence->RollBack(3500).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(sequence->position(), 4000);
}

// Two layers that see 384 tokens back.
TEST(PagedCache, ASequenceThatBeginsInTheMiddleIsExactLaterAndIsNeverFound) {
  CacheHarness harness(kPlenty);
  const Tokens text = Text(4000, 1);
  const int64_t begin = harness.cache->RecomputeFrom(3500);
  EXPECT_EQ(begin, 2048);
  auto sequence = harness.cache->BeginAt(begin, 4000);
  ASSERT_TRUE(sequence.ok());
  harness.Read(**sequence, text, 3500, begin);
  EXPECT_EQ((*sequence)->RollBack(3400).status().code(), absl::StatusCode::kNotFound);
  harness.Read(**sequence, text, 3600, begin);
  sequence->reset();
  EXPECT_EQ(harness.cache->state().idle.window, 0);
  EXPECT_EQ(harness.cache->state().free.window, 100);
  EXPECT_EQ(harness.ReadAndEnd(text), 0);
}

}  // namespace longshort::core::cache_paged_cache_test
