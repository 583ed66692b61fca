#include "models/tokenizer/sequence_pair.h"

#include <algorithm>
#include <utility>

namespace longshort::models {
namespace {

constexpr int64_t kAddedOfPair = 4;  // <s>, </s></s> and </s>

// The numbers of ids of A and B that remain; their sum is at most `limit`.
std::pair<int64_t, int64_t> LongestFirst(int64_t first, int64_t second, int64_t limit) {
  if (first + second <= limit) return {first, second};
  const int64_t shorter = std::min({first, second, limit / 2});
  const int64_t longer = limit - shorter;
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

DocumentBeginning JoinPair(const DocumentBeginning& first, const DocumentBeginning& second, int32_t separator_id,
                           int64_t limit) {
  const auto [kept_first, kept_second] = LongestFirst(first.tokens - 2, second.tokens - 2, limit - kAddedOfPair);
  DocumentBeginning pair;
  pair.tokens = first.tokens + second.tokens;
  pair.ids.reserve(kept_first + kept_second + kAddedOfPair);
  pair.ids.insert(pair.ids.end(), first.ids.begin(), first.ids.begin() + 1 + kept_first);
  pair.ids.push_back(first.ids.back());
  pair.ids.push_back(separator_id);
  pair.ids.insert(pair.ids.end(), second.ids.begin() + 1, second.ids.begin() + 1 + kept_second);
  pair.ids.push_back(second.ids.back());
  return pair;
}

}  // namespace longshort::models
