#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/tokenizer/tokenizers.h"

namespace longshort::models::sequence_pair_test {

using ::testing::ElementsAre;

constexpr int64_t kUnlimited = 1'000'000;
constexpr int32_t kBegin = 0;
constexpr int32_t kEnd = 2;

// <s>, `content` times `id`, </s>: the first `limit` ids of it, as a tokenizer cuts them.
DocumentBeginning Complete(int64_t content, int32_t id, int64_t limit = kUnlimited) {
  DocumentBeginning sequence;
  sequence.ids.assign(1 + std::min(content, limit - 2), id);
  sequence.ids.front() = kBegin;
  sequence.ids.push_back(kEnd);
  sequence.tokens = content + 2;
  return sequence;
}

TEST(JoinPair, PutsTwoSeparatorsBetweenTheSequences) {
  const DocumentBeginning pair = JoinPair(Complete(2, 7), Complete(3, 8), 5, kUnlimited);
  EXPECT_THAT(pair.ids, ElementsAre(kBegin, 7, 7, kEnd, 5, 8, 8, 8, kEnd));
  EXPECT_EQ(pair.tokens, 9);
  EXPECT_THAT(JoinPair(Complete(0, 7), Complete(0, 8), kEnd, 4).ids, ElementsAre(kBegin, kEnd, kEnd, kEnd));
}

// The kept numbers are those of the package `tokenizers` 0.23.3 with enable_truncation(limit), for "a" * first and
// "b" * second.
TEST(JoinPair, TruncatesTheLongerSequenceFirst) {
  struct Case {
    int64_t limit, first, second, kept_first, kept_second;
  };
  constexpr Case kCases[] = {
      {4, 0, 9, 0, 0},  {4, 9, 9, 0, 0},  {5, 0, 9, 0, 1},  {5, 9, 0, 1, 0},  {5, 3, 9, 0, 1},  {5, 9, 3, 1, 0},
      {5, 5, 5, 0, 1},  {5, 5, 4, 1, 0},  {8, 0, 9, 0, 4},  {8, 3, 9, 2, 2},  {8, 9, 3, 2, 2},  {8, 2, 2, 2, 2},
      {9, 0, 9, 0, 5},  {9, 9, 0, 5, 0},  {9, 3, 9, 2, 3},  {9, 9, 3, 3, 2},  {9, 5, 5, 2, 3},  {9, 4, 5, 2, 3},
      {9, 5, 4, 3, 2},  {9, 2, 2, 2, 2},  {12, 0, 9, 0, 8}, {12, 3, 9, 3, 5}, {12, 9, 3, 5, 3}, {12, 5, 5, 4, 4},
      {12, 5, 4, 4, 4}, {12, 2, 2, 2, 2},
  };
  for (const Case& given : kCases) {
    for (const int64_t cut : {given.limit, kUnlimited}) {
      const DocumentBeginning pair =
          JoinPair(Complete(given.first, 7, cut), Complete(given.second, 8, cut), kEnd, given.limit);
      DocumentBeginning expected =
          JoinPair(Complete(given.kept_first, 7), Complete(given.kept_second, 8), kEnd, kUnlimited);
      EXPECT_EQ(pair.ids, expected.ids) << given.first << " and " << given.second << " tokens, at most " << given.limit;
      EXPECT_EQ(pair.tokens, given.first + given.second + 4);
    }
  }
}

}  // namespace longshort::models::sequence_pair_test
