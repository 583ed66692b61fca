// The served model on the engine's pages: reuse, resume, copy, rollback and recomputation give the logits of a stream
// that was read at once.

#include "core/cache/paged_cache.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cache/cache_grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::language_model_paged_cache_test {

using Tokens = std::vector<int32_t>;

// Two layers. Segments end inside blocks.
LanguageModelConfig TestedConfig() {
  LanguageModelConfig config = SmallConfig();
  config.chunk_rank = 2;
  config.window_length = 100;
  config.memory_length = 120;
  config.segment_length = 40;
  return config;
}

class PagedModelTest : public testing::TestWithParam<TestedBackend> {
 protected:
  explicit PagedModelTest(int64_t streams = 8)
      : model_(RandomModelOn(GetParam(), config_, 5)),
        block_(std::lcm(model_->info().rows_per_page, config_.chunk_size)),
        cache_(*core::PagedCache::Create(*model_, core::PagesForStreams(model_->info(), streams))) {}

  Tokens Random(int64_t count, uint64_t seed, Tokens prefix = {}) {
    std::mt19937_64 random(seed);
    for (int64_t i = 0; i < count; ++i) {
      prefix.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config_.vocabulary_size)));
    }
    return prefix;
  }

  // Reads `tokens` from the sequence's position to `end`, and returns their logits, [tokens, V].
  std::vector<float> Read(core::CachedSequence& sequence, const Tokens& tokens, int64_t end) {
    return ReadWith(*model_, sequence, tokens, end);
  }
  std::vector<float> ReadWith(LanguageModel& model, core::CachedSequence& sequence, const Tokens& tokens, int64_t end) {
    std::vector<float> logits;
    while (sequence.position() < end) {
      Slice slice;
      const int64_t count = sequence.MaxTokens(std::min<int64_t>(end - sequence.position(), 29));
      slice.tokens = absl::MakeConstSpan(tokens).subspan(sequence.position(), count);
      slice.logit_rows = count;
      const absl::Status filled = sequence.FillIn(slice);
      EXPECT_TRUE(filled.ok()) << filled;
      const absl::StatusOr<StepResult> result = model.Step({slice});
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) return logits;
      logits.insert(logits.end(), result->logits.begin(), result->logits.end());
      sequence.OnRead(slice.tokens);
    }
    return logits;
  }
  std::unique_ptr<core::CachedSequence> Begin(const Tokens& tokens, int64_t max_reused) {
    return *cache_->Begin(tokens, max_reused, static_cast<int64_t>(tokens.size()));
  }
  // Logits from position `from` on of a stream that reads everything itself.
  std::vector<float> Alone(const Tokens& tokens, int64_t from) {
    const auto count = static_cast<int64_t>(tokens.size());
    const std::vector<float> logits = Read(*Begin(tokens, 0), tokens, count);
    return std::vector<float>(logits.begin() + from * config_.vocabulary_size, logits.end());
  }
  double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    return largest;
  }

  // The last begin of a block of the cache, by which prefixes are shared.
  int64_t BlockBegin(int64_t position) const { return position / block_ * block_; }

  const LanguageModelConfig config_ = TestedConfig();
  const std::unique_ptr<LanguageModel> model_;
  const int64_t block_;  // tokens
  std::unique_ptr<core::PagedCache> cache_;
};
INSTANTIATE_TEST_SUITE_P(Backends, PagedModelTest, testing::ValuesIn(QuickBackends()),
                         [](const auto& info) { return NameOf(info); });
// A minute; tests/gpu/run's rehearsal runs these, too.
INSTANTIATE_TEST_SUITE_P(DISABLED_Slow, PagedModelTest, testing::ValuesIn(SlowBackends()),
                         [](const auto& info) { return NameOf(info); });

// Tests that take an emulated GPU minutes.
class LongPagedModelTest : public PagedModelTest {};
INSTANTIATE_TEST_SUITE_P(Backends, LongPagedModelTest, testing::ValuesIn(QuickBackends()),
                         [](const auto& info) { return NameOf(info); });

TEST_P(PagedModelTest, LogitsBehindAReusedPrefixAreThoseOfReadingIt) {
  const Tokens shared = Random(6 * block_, 1);
  Read(*Begin(shared, 0), shared, static_cast<int64_t>(shared.size()));
  for (int64_t blocks = 6; blocks >= 1; --blocks) {
    const Tokens text = Random(40, 10 + blocks, Tokens(shared.begin(), shared.begin() + block_ * blocks));
    const auto sequence = Begin(text, static_cast<int64_t>(text.size()) - 1);
    ASSERT_EQ(sequence->position(), block_ * blocks);
    const std::vector<float> logits = Read(*sequence, text, static_cast<int64_t>(text.size()));
    EXPECT_LT(LargestDifference(logits, Alone(text, block_ * blocks)), 1e-5) << blocks;
  }
}

TEST_P(PagedModelTest, AParkedSequenceAndOneThatSkipsWhatItReadGoOnExactly) {
  const Tokens text = Random(600, 2), fork = Random(300, 3, Tokens(text.begin(), text.begin() + 301));
  auto sequence = Begin(text, 0);
  const auto skipping = Begin(fork, 0);
  Read(*sequence, text, 301);
  const core::ParkedId id = cache_->Park(std::move(sequence));
  EXPECT_EQ(*cache_->SkipRead(*skipping, fork, 301), BlockBegin(301));
  const std::vector<float> of_fork = Read(*skipping, fork, 601);
  const auto resumed = *cache_->Resume(id, 600);
  const std::vector<float> of_text = Read(*resumed, text, 600);
  EXPECT_LT(LargestDifference(of_fork, Alone(fork, BlockBegin(301))), 1e-5);
  EXPECT_LT(LargestDifference(of_text, Alone(text, 301)), 1e-5);
}

TEST_P(PagedModelTest, ASequenceThatWentBackGoesOnExactly) {
  const Tokens text = Random(400, 4);
  for (const int64_t target : {397, 390, 385, 384, 300, 70}) {
    const auto sequence = Begin(text, 399);
    Read(*sequence, text, 399);
    const int64_t stands = *sequence->RollBack(target);
    EXPECT_LE(stands, target);
    EXPECT_GE(stands, BlockBegin(target));
    const Tokens other =
        Random(400 - stands, static_cast<uint64_t>(target), Tokens(text.begin(), text.begin() + stands));
    EXPECT_LT(LargestDifference(Read(*sequence, other, 400), Alone(other, stands)), 1e-5) << target;
  }
}

// n_layer * (M + L) = 320 tokens are enough, whatever came before.
TEST_P(LongPagedModelTest, ASequenceRecomputedFromItsLastTokensIsExact) {
  const Tokens text = Random(2000, 6);
  const int64_t position = 1700;
  const int64_t begin = cache_->RecomputeFrom(position);
  ASSERT_GT(begin, 0);
  ASSERT_LE(begin, position - 320);
  const auto sequence = *cache_->BeginAt(begin, 2000);
  Read(*sequence, text, position);
  const std::vector<float> logits = Read(*sequence, text, 2000);
  EXPECT_LT(LargestDifference(logits, Alone(text, position)), 1e-5);
}

// Beside the other model's own sequences; in the middle of a chunk, at its end, and at a segment's.
TEST_P(LongPagedModelTest, AnExportedSequenceGoesOnInAnotherModelBitForBit) {
  const Tokens text = Random(500, 7);
  for (const int64_t position : {1, 5, 64, 128, 333, 360, 448}) {
    auto sequence = Begin(text, 0);
    Read(*sequence, text, position);
    const core::ParkedId id = cache_->Park(std::move(sequence));

    const std::unique_ptr<LanguageModel> other = RandomModelOn(GetParam(), config_, 5);
    ASSERT_EQ(other->info().cache_layout, model_->info().cache_layout);
    const auto other_cache = *core::PagedCache::Create(*other, core::PagesForStreams(other->info(), 8));
    const absl::StatusOr<core::ParkedPages> pages = cache_->Export(id);
    ASSERT_TRUE(pages.ok()) << pages.status();
    const auto imported = other_cache->Import(*pages, absl::MakeConstSpan(text).first(position + 1));
    ASSERT_TRUE(imported.ok()) << imported.status();

    const auto here = *cache_->Resume(id, 500), there = *other_cache->Resume(*imported, 500);
    EXPECT_EQ(there->position(), position);
    const std::vector<float> stayed = Read(*here, text, 500);
    EXPECT_EQ(stayed, ReadWith(*other, *there, text, 500)) << position;
    EXPECT_LT(LargestDifference(stayed, Alone(text, position)), 1e-5);
  }
}

// Its pages held other texts before, which must not leak into the archive of a history.
TEST_P(LongPagedModelTest, ExportsTheSameBytesWhateverThePagesHeldBefore) {
  const Tokens text = Random(333, 7);
  const auto exported = [&](core::PagedCache& cache) {
    auto sequence = *cache.Begin(text, 0, 333);
    Read(*sequence, text, 333);
    return cache.Export(cache.Park(std::move(sequence)))->contents;
  };
  const std::string first = exported(*cache_);
  for (uint64_t seed = 20; seed < 40; ++seed) {  // all the pages there are, several times
    const Tokens other = Random(700, seed);
    Read(*Begin(other, 0), other, 700);
  }
  EXPECT_TRUE(exported(*cache_) == first);
}

TEST_P(PagedModelTest, RefusesPagesAndBytesThatDoNotExist) {
  const CachePages pages = core::PagesForStreams(model_->info(), 8);
  EXPECT_EQ(model_->CopyPage(PageKind::kWindow, 0, static_cast<PageId>(pages.window)).code(),
            absl::StatusCode::kInvalidArgument);
  const auto rows = static_cast<int>(model_->info().rows_per_page);
  EXPECT_EQ(model_->ReadPage(PageKind::kSegment, -1, {0, rows}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(model_->ReadPage(PageKind::kSegment, 0, {0, rows + 1}).status().message(),
            absl::StrCat("rows 0 to ", rows + 1, " of a page that has ", rows));
  EXPECT_EQ(model_->WritePage(PageKind::kOpenChunk, 0, "short").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(model_->CopyPage(PageKind::kWindow, kZeroPage, 0).ok());
  EXPECT_NE(RandomModelOn(GetParam(), config_, 5, at::kBFloat16)->info().cache_layout, model_->info().cache_layout);
}

}  // namespace longshort::models::language_model_paged_cache_test
