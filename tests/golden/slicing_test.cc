#include "tests/golden/slicing.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::slicing_test {

using ::testing::Each;
using ::testing::ElementsAre;

// Three segments: |0 .. 7|8 .. 19|20 .. 24|
GoldenStream ThreeSegments() {
  GoldenStream stream;
  stream.tokens.resize(25);
  stream.expected.resize(25);
  stream.segment_starts = {0, 8, 20};
  return stream;
}

// How many segment ends lie inside a slice.
int CrossedEnds(const GoldenStream& stream, const SliceLengths& lengths) {
  int crossed = 0;
  int64_t position = 0;
  for (const int64_t length : lengths) {
    if (length > 0 && stream.SegmentStart(position + length - 1) != stream.SegmentStart(position)) ++crossed;
    position += length;
  }
  return crossed;
}

TEST(GoldenStream, APositionBelongsToTheSegmentThatStartsLastBeforeIt) {
  const GoldenStream stream = ThreeSegments();
  EXPECT_EQ(stream.SegmentStart(7), 0);
  EXPECT_EQ(stream.SegmentEnd(7), 8);
  EXPECT_EQ(stream.SegmentStart(8), 8);
  EXPECT_EQ(stream.SegmentEnd(8), 20);
  EXPECT_EQ(stream.SegmentStart(24), 20);
  EXPECT_EQ(stream.SegmentEnd(24), 25);
}

TEST(Slicing, WholeSegmentsAreOneSliceEach) { EXPECT_THAT(WholeSegments(ThreeSegments()), ElementsAre(8, 12, 5)); }

TEST(Slicing, TokenByTokenIsOneSliceForEachToken) {
  const SliceLengths lengths = TokenByToken(ThreeSegments());
  EXPECT_EQ(lengths.size(), 25);
  EXPECT_THAT(lengths, Each(1));
}

TEST(Slicing, RandomCutsFeedEveryTokenOnceAndKeepSegmentEnds) {
  const GoldenStream stream = ThreeSegments();
  std::mt19937_64 random(7);
  for (int draw = 0; draw < 200; ++draw) {
    const SliceLengths lengths = RandomCuts(stream, SegmentEnds::kKept, 8, random);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 25);
    EXPECT_EQ(CrossedEnds(stream, lengths), 0);
  }
}

TEST(Slicing, RandomCutsCrossSegmentEndsWhereTheyMay) {
  const GoldenStream stream = ThreeSegments();
  std::mt19937_64 random(7);
  int crossed = 0;
  for (int draw = 0; draw < 200; ++draw) {
    const SliceLengths lengths = RandomCuts(stream, SegmentEnds::kCrossed, 8, random);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}), 25);
    crossed += CrossedEnds(stream, lengths);
  }
  EXPECT_GT(crossed, 100);  // two ends in each of 200 draws could be crossed
}

}  // namespace longshort::slicing_test
