#include "models/tokenizer/byte_pair_merges.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <queue>

namespace longshort::models {
namespace {

constexpr size_t kLongestScanned = 48;  // parts of a word
constexpr uint32_t kNoRank = std::numeric_limits<uint32_t>::max();

uint64_t KeyOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

bool BytePairMerges::Add(int32_t left, int32_t right, int32_t merged) {
  return rules_.try_emplace(KeyOf(left, right), Rule{static_cast<uint32_t>(rules_.size()), merged}).second;
}

const BytePairMerges::Rule* BytePairMerges::Find(int32_t left, int32_t right) const {
  const auto found = rules_.find(KeyOf(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

void BytePairMerges::Apply(std::vector<WordPart>& parts) const {
  if (parts.size() <= kLongestScanned) return ApplyByScanning(parts);
  ApplyByHeap(parts);
}

void BytePairMerges::ApplyByScanning(std::vector<WordPart>& parts) const {
  // Of each part and its right neighbour.
  std::array<Rule, kLongestScanned> rule;
  size_t size = parts.size();
  const auto look_up = [&](size_t i) {
    const Rule* const found = i + 1 < size ? Find(parts[i].id, parts[i + 1].id) : nullptr;
    rule[i] = found != nullptr ? *found : Rule{kNoRank, 0};
  };
  for (size_t i = 0; i < size; ++i) look_up(i);
  while (size > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < size; ++i) {
      if (rule[i].rank < rule[best].rank) best = i;
    }
    if (rule[best].rank == kNoRank) break;
    parts[best].id = rule[best].merged;
    parts[best].end = parts[best + 1].end;
    std::copy(parts.begin() + best + 2, parts.begin() + size, parts.begin() + best + 1);
    std::copy(rule.begin() + best + 2, rule.begin() + size, rule.begin() + best + 1);
    --size;
    look_up(best);
    if (best > 0) look_up(best - 1);
  }
  parts.resize(size);
}

void BytePairMerges::ApplyByHeap(std::vector<WordPart>& parts) const {
  struct Neighbours {
    size_t left;   // where they were when there was no part
    size_t right;  // the number of parts if there is none
  };
  using Candidate = std::pair<uint32_t, size_t>;  // the rule's rank, and where its left part is
  const size_t size = parts.size();
  std::vector<Neighbours> neighbours(size);
  for (size_t i = 0; i < size; ++i) neighbours[i] = {i - 1, i + 1};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto push = [&](size_t at) {
    const size_t right = neighbours[at].right;
    if (right >= size) return;
    const Rule* const rule = Find(parts[at].id, parts[right].id);
    if (rule != nullptr) queue.push({rule->rank, at});
  };
  constexpr int32_t kGone = -1;
  for (size_t i = 0; i + 1 < size; ++i) push(i);
  while (!queue.empty()) {
    const auto [rank, at] = queue.top();
    queue.pop();
    WordPart& left = parts[at];
    const size_t right = neighbours[at].right;
    if (left.id == kGone || right >= size) continue;
    const Rule* const rule = Find(left.id, parts[right].id);
    if (rule == nullptr || rule->rank != rank) continue;  // one of the two was merged since
    left.id = rule->merged;
    left.end = parts[right].end;
    parts[right].id = kGone;
    neighbours[at].right = neighbours[right].right;
    if (neighbours[right].right < size) neighbours[neighbours[right].right].left = at;
    push(at);
    if (at > 0) push(neighbours[at].left);
  }
  std::erase_if(parts, [](const WordPart& part) { return part.id == kGone; });
}

}  // namespace longshort::models
