#include "models/tokenizer/sequence_pair.h"

#include <algorithm>

namespace longshort::models {

std::pair<int64_t, int64_t> KeptOfPair(int64_t first, int64_t second, int64_t limit) {
  if (first + second <= limit) return {first, second};
  const int64_t shorter = std::min({first, second, limit / 2});
  const int64_t longer = limit - shorter;
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

DocumentBeginning JoinPair(const DocumentBeginning& first, const DocumentBeginning& second, int32_t separator_id,
                           int64_t limit) {
  const auto [kept_first, kept_second] = KeptOfPair(first.tokens, second.tokens, limit);
  DocumentBeginning pair;
  pair.tokens = first.tokens + second.tokens;
  pair.ids.reserve(kept_first + kept_second);
  pair.ids.insert(pair.ids.end(), first.ids.begin(), first.ids.begin() + kept_first - 1);
  pair.ids.push_back(first.ids.back());
  pair.ids.push_back(separator_id);
  pair.ids.insert(pair.ids.end(), second.ids.begin() + 1, second.ids.begin() + kept_second - 1);
  pair.ids.push_back(second.ids.back());
  return pair;
}

}  // namespace longshort::models
