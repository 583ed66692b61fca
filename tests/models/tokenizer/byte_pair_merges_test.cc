#include "models/tokenizer/byte_pair_merges.h"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace longshort::models::byte_pair_merges_test {

// The plain form: looks for the first rule that fits, from the first rule on.
std::vector<int32_t> MergeOneByOne(std::vector<int32_t> ids, const std::vector<std::array<int32_t, 3>>& rules) {
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right, both] : rules) {
      for (size_t i = 0; i + 1 < ids.size() && !merged; ++i) {
        if (ids[i] != left || ids[i + 1] != right) continue;
        ids[i] = both;
        ids.erase(ids.begin() + static_cast<int64_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  return ids;
}

TEST(BytePairMerges, MergesInTheOrderOfRulesWhateverTheLength) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    BytePairMerges merges;
    std::vector<std::array<int32_t, 3>> rules;
    int32_t ids = 4;
    for (int i = 0; i < 20; ++i) {
      const auto draw = [&] { return static_cast<int32_t>(random() % ids); };
      const std::array<int32_t, 3> rule = {draw(), draw(), ids};
      if (!merges.Add(rule[0], rule[1], rule[2])) continue;
      rules.push_back(rule);
      ++ids;
    }
    std::vector<int32_t> word;
    std::vector<WordPart> parts;
    for (uint32_t i = 0, letters = random() % 120; i < letters; ++i) {
      word.push_back(static_cast<int32_t>(random() % 4));
      parts.push_back({word.back(), i, i + 1});
    }
    merges.Apply(parts);
    std::vector<int32_t> merged;
    uint32_t end = 0;
    for (const WordPart& part : parts) {
      merged.push_back(part.id);
      EXPECT_EQ(part.begin, end);
      end = part.end;
    }
    EXPECT_EQ(end, word.size());
    EXPECT_EQ(merged, MergeOneByOne(word, rules)) << "of " << word.size() << " letters";
  }
}

}  // namespace longshort::models::byte_pair_merges_test
