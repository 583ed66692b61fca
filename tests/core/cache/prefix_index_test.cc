// Which prefixes of earlier texts are found, and which pages are evicted first.

#include "core/cache/prefix_index.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/cache/cache_harness.h"

namespace longshort::core::prefix_index_test {

// Two conversations that share 256 tokens:
//   [0..255] ──┬── A   [256..399]
//              └── B   [256..399]     B reads 0 of the shared tokens again
TEST(PrefixIndex, ASecondConversationBeginsBehindWhatItShares) {
  CacheHarness harness(kPlenty);
  const Tokens shared = Text(256, 1);
  EXPECT_EQ(harness.ReadAndEnd(Text(144, 2, shared)), 0);
  EXPECT_EQ(harness.ReadAndEnd(Text(144, 3, shared)), 256);
  EXPECT_EQ(harness.ReadAndEnd(Text(144, 3, shared)), 384);  // six whole blocks of B, without the rest
}

TEST(PrefixIndex, AHitMayEndAtAnyBlock) {
  for (int64_t blocks = 1; blocks <= 20; ++blocks) {
    CacheHarness harness(kPlenty);
    harness.ReadAndEnd(Text(64 * 20, 1));
    Tokens text = Text(64 * blocks, 1);
    EXPECT_EQ(harness.ReadAndEnd(Text(200, 2, text)), 64 * blocks);
  }
}

TEST(PrefixIndex, AWholePromptIsNeverAHitBecauseItsLastLogitsAreWanted) {
  CacheHarness harness(kPlenty);
  harness.ReadAndEnd(Text(128, 1));
  EXPECT_EQ(harness.ReadAndEnd(Text(128, 1)), 64);
  EXPECT_EQ(harness.ReadAndEnd(Text(129, 1)), 128);
}

// With 192 vectors a block of 64 tokens fills three pages; with 48 every other block begins inside one:
//   page     0             1             2
//   vectors  [0    ..   63][64   ..  127][128  ..  191]
//   blocks   [0 .. 47][48  .. 95][96 .. 143][144  ..  191]
TEST(PrefixIndex, ForksWhereABlockTouchesTwoPagesOfVectors) {
  models::LanguageModelInfo info = DrawnInfo();
  info.chunk_size = 4;
  info.chunk_rank = 3;
  CacheHarness harness({.window = 100, .segment = 300, .open_chunk = 10}, info);
  const Tokens text = Text(64 * 8, 1);
  harness.ReadAndEnd(text);
  for (int64_t blocks = 7; blocks >= 1; --blocks) {  // forks of forks too: each reads on as far as the first
    Tokens fork(text.begin(), text.begin() + 64 * blocks);
    fork = Text(64 * (8 - blocks), static_cast<int32_t>(blocks) + 1, fork);
    EXPECT_EQ(harness.ReadAndEnd(fork), 64 * blocks);
    fork.resize(64 * 7);
    EXPECT_EQ(harness.ReadAndEnd(Text(100, 20, fork)), 64 * 7);
  }
  EXPECT_EQ(harness.ReadAndEnd(text), 64 * 7);
}

uint64_t BadHash(uint64_t, absl::Span<const int32_t>) { return 42; }

TEST(PrefixIndex, CollidingHashesNeverGiveAWrongHit) {
  CacheHarness harness({.window = 1000, .segment = 1000, .open_chunk = 10}, DrawnInfo(), BadHash);
  std::mt19937 random(1);
  std::vector<Tokens> texts;
  for (int i = 0; i < 60; ++i) {
    Tokens text = texts.empty() ? Tokens() : texts[random() % texts.size()];
    text.resize(std::min<size_t>(text.size(), random() % 400));
    text = Text(static_cast<int64_t>(400 - text.size()), i % 3, text);
    text[random() % text.size()] = 999;
    int64_t expected = 0;
    for (const Tokens& other : texts) {
      const auto differ = std::mismatch(text.begin(), text.end() - 1, other.begin()).first - text.begin();
      expected = std::max<int64_t>(expected, differ / 64 * 64);
    }
    EXPECT_EQ(harness.ReadAndEnd(text), expected);  // and the model looks at the rows
    texts.push_back(text);
  }
}

// Ten blocks are read with room for six window pages. Of them
//   block   0 1 2 3 4 5 6 7 8 9
//   end                       * needs the page of block 9; the others are interior
TEST(PrefixIndex, InteriorWindowPagesGoBeforeAChainsEnd) {
  CacheHarness harness({.window = 6, .segment = 100, .open_chunk = 10});
  const Tokens text = Text(640, 1);
  harness.ReadAndEnd(text);
  harness.ReadAndEnd(Text(320, 2));
  EXPECT_EQ(harness.cache->state().counters.evicted_ends, 0);
  EXPECT_EQ(harness.ReadAndEnd(Text(64, 3, text)), 640);
  Tokens middle(text.begin(), text.begin() + 320);
  EXPECT_EQ(harness.ReadAndEnd(Text(64, 4, middle)), 0);
}

// Two texts are read with room for 13 window pages. What the first needs of its nine, with a window of four pages:
//   block             0 1 2 3 4 5 6 7 8
//   at its end                  * * * *
//   a fork behind 8           * * * *
//   a fork behind 7         * * * *      half a window from the end: no further
TEST(PrefixIndex, OthersMayPartFromAChainShortlyBeforeItsEnd) {
  models::LanguageModelInfo info = DrawnInfo();
  info.window_length = 257;
  for (int64_t blocks = 5; blocks <= 8; ++blocks) {
    CacheHarness harness({.window = 13, .segment = 100, .open_chunk = 10}, info);
    const Tokens text = Text(64 * 9, 1);
    harness.ReadAndEnd(text);
    harness.ReadAndEnd(Text(64 * 9, 2));
    EXPECT_EQ(harness.cache->state().counters.evicted_ends, 0);
    const Tokens shared(text.begin(), text.begin() + 64 * blocks);
    EXPECT_EQ(harness.ReadAndEnd(Text(64, 3, shared)), blocks < 7 ? 0 : 64 * blocks);
  }
}

// As drawn above, the end of nine blocks needs six window pages; of vectors, those that its memory and segment are on.
TEST(PrefixIndex, ReportsWhatItsEndsKeepAndWhatIsSpare) {
  models::LanguageModelInfo info = DrawnInfo();
  info.window_length = 257;
  CacheHarness harness(kPlenty, info);
  harness.ReadAndEnd(Text(64 * 9, 1));
  const CacheState one = harness.cache->state();
  EXPECT_EQ(one.ends, 1);
  EXPECT_EQ(one.idle.window, 9);
  EXPECT_EQ(one.spare.window, 3);
  harness.ReadAndEnd(Text(64 * 9, 2));
  const CacheState two = harness.cache->state();
  EXPECT_EQ(two.ends, 2);
  EXPECT_EQ(two.spare.window, 6);
  EXPECT_EQ(two.idle.segment - two.spare.segment, 2 * (one.idle.segment - one.spare.segment));
}

TEST(PrefixIndex, EndsGoInTheOrderOfTheirLastUse) {
  CacheHarness harness({.window = 6, .segment = 100, .open_chunk = 10});
  for (int32_t seed = 1; seed <= 5; ++seed) harness.ReadAndEnd(Text(64, seed));
  EXPECT_EQ(harness.ReadAndEnd(Text(65, 1)), 64);  // used again; a sixth page was free for its last token
  harness.ReadAndEnd(Text(192, 9));                // three pages
  EXPECT_EQ(harness.cache->state().counters.evicted_ends, 2);
  EXPECT_EQ(harness.ReadAndEnd(Text(65, 1)), 64);
  EXPECT_EQ(harness.ReadAndEnd(Text(65, 5)), 64);
  EXPECT_EQ(harness.ReadAndEnd(Text(65, 2)), 0);
}

// The shared prefix is long past for both ends, and yet kept: many may go on from it.
TEST(PrefixIndex, AForkIsKeptLikeAnEnd) {
  CacheHarness harness({.window = 9, .segment = 100, .open_chunk = 10});
  const Tokens shared = Text(256, 1);
  harness.ReadAndEnd(Text(256, 2, shared));
  harness.ReadAndEnd(Text(256, 3, shared));
  harness.ReadAndEnd(Text(320, 4));  // takes every unused page
  EXPECT_EQ(harness.cache->state().counters.evicted_ends, 0);
  EXPECT_EQ(harness.ReadAndEnd(Text(64, 5, shared)), 256);
}

TEST(PrefixIndex, AChainOfWhichNothingIsOfUseLeavesNothingBehind) {
  CacheHarness harness({.window = 4, .segment = 6, .open_chunk = 10});
  for (int32_t seed = 1; seed < 50; ++seed) harness.ReadAndEnd(Text(640, seed % 7));
  const CacheState state = harness.cache->state();
  EXPECT_EQ(state.in_use.window + state.in_use.segment + state.in_use.open_chunk, 0);
  EXPECT_LE(state.idle.window + state.free.window, 4);
  EXPECT_TRUE(harness.cache->CheckInvariants().ok());
}

TEST(PrefixIndex, OneThatReadsAlongGivesBackWhatWasEvicted) {
  CacheHarness harness({.window = 6, .segment = 100, .open_chunk = 10});
  const Tokens text = Text(640, 1);
  harness.ReadAndEnd(text);
  harness.ReadAndEnd(Text(320, 2));  // evicts the interior of the first
  const Tokens middle(text.begin(), text.begin() + 320);
  EXPECT_EQ(harness.ReadAndEnd(middle), 0);
  EXPECT_EQ(harness.ReadAndEnd(Text(10, 3, middle)), 320);
}

}  // namespace longshort::core::prefix_index_test
