// Byte-pair encoding of one word by rules of merging.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace longshort::models {

// A part of a word with an id.
struct WordPart {
  int32_t id = 0;
  uint32_t begin = 0;  // the bytes of the word
  uint32_t end = 0;
};

// Immutable after the last Add, hence thread-safe.
class BytePairMerges final {
 public:
  // Two neighbours, `left` and `right`, become `merged`. Rules that are added first come first. Returns false if there
  // is a rule for the two.
  bool Add(int32_t left, int32_t right, int32_t merged);

  // Merges the neighbours with the first rule, the leftmost first, until no rule is left. Of n parts, takes time in
  // proportion to n log n.
  void Apply(std::vector<WordPart>& parts) const;

 private:
  struct Rule {
    uint32_t rank;
    int32_t merged;
  };

  const Rule* Find(int32_t left, int32_t right) const;
  // Both give the same parts. The first is faster for short words, the second is not quadratic.
  void ApplyByScanning(std::vector<WordPart>& parts) const;
  void ApplyByHeap(std::vector<WordPart>& parts) const;

  absl::flat_hash_map<uint64_t, Rule> rules_;  // by the two ids
};

}  // namespace longshort::models
