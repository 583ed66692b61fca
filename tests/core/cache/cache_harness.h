// A cache over a model that looks at every row, and sequences that read texts in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/fakes/witness_model.h"

namespace longshort::core {

using Tokens = std::vector<int32_t>;

// Blocks of 64 tokens have 4 vectors: 16 blocks share a page. The window sees one page before its own (W = 65), the
// memory 256 tokens before the segment of 128.
inline models::LanguageModelInfo DrawnInfo() {
  models::LanguageModelInfo info;
  info.layers = 2;
  info.chunk_size = 16;
  info.chunk_rank = 1;
  info.window_length = 65;
  info.memory_length = 256;
  info.segment_length = 128;
  info.rows_per_page = 64;
  info.vocabulary_size = 1000;
  return info;
}

// `count` tokens that no other `seed` has, behind `prefix`.
inline Tokens Text(int64_t count, int32_t seed, Tokens prefix = {}) {
  for (int64_t i = 0; i < count; ++i) prefix.push_back(static_cast<int32_t>(100 * seed + i % 97));
  return prefix;
}

class CacheHarness {
 public:
  explicit CacheHarness(const models::CachePages& capacity, const models::LanguageModelInfo& info = DrawnInfo(),
                        BlockHash hash = HashOfBlock)
      : model(info), cache(*PagedCache::Create(model, capacity, hash)) {}

  std::unique_ptr<CachedSequence> Begin(const Tokens& tokens, int64_t max_more = 0) {
    const auto count = static_cast<int64_t>(tokens.size());
    auto sequence = cache->Begin(tokens, count - 1, count + max_more);
    EXPECT_TRUE(sequence.ok()) << sequence.status();
    return sequence.ok() ? *std::move(sequence) : nullptr;
  }

  // Reads what the sequence has not read of `tokens`, up to `end`; the model compares what it sees with all of them.
  // `begin`: where the sequence began to be read.
  void Read(CachedSequence& sequence, const Tokens& tokens, int64_t end, int64_t begin = 0) {
    while (sequence.position() < end && !testing::Test::HasFailure()) {
      models::Slice slice;
      const int64_t count = sequence.MaxTokens(std::min<int64_t>(end - sequence.position(), 50));
      slice.tokens = absl::MakeConstSpan(tokens).subspan(sequence.position(), count);
      const absl::Status filled = sequence.FillIn(slice);
      ASSERT_TRUE(filled.ok()) << filled;
      Witness witness(begin);
      for (int64_t i = begin; i < sequence.position() + count; ++i) witness.Append(tokens[i]);
      model.witnesses = {&witness};
      const absl::Status status = model.Step({slice}).status();
      ASSERT_TRUE(status.ok()) << status << " at position " << sequence.position();
      sequence.OnRead(slice.tokens);
      const absl::Status invariants = cache->CheckInvariants();
      ASSERT_TRUE(invariants.ok()) << invariants;
    }
  }
  void Read(CachedSequence& sequence, const Tokens& tokens) {
    Read(sequence, tokens, static_cast<int64_t>(tokens.size()));
  }

  // Reads a whole text and ends; returns how many tokens it did not have to read.
  int64_t ReadAndEnd(const Tokens& tokens) {
    const std::unique_ptr<CachedSequence> sequence = Begin(tokens);
    if (sequence == nullptr) return -1;
    Read(*sequence, tokens);
    return sequence->reused_tokens();
  }

  WitnessModel model;
  std::unique_ptr<PagedCache> cache;
};

inline constexpr models::CachePages kPlenty = {.window = 100, .segment = 100, .open_chunk = 10};

}  // namespace longshort::core
