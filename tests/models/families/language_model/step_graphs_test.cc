// Steps that run as graphs give the same results as steps that run without.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/cache/cache_grid.h"
#include "core/cache/paged_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/models/families/language_model/emulated_backends.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::step_graphs_test {

constexpr WorkerDevice kWorker = {.kind = DeviceKind::kEmulated};
constexpr int64_t kMaxRows = 8, kStreams = 12, kMaxTokens = 400;
// The allowed difference of products with different numbers of rows.
constexpr double kRounding = 1e-5;

// One part of a step: a number of tokens of a stream, and of their logits.
struct Piece {
  int stream = 0;
  int64_t tokens = 1;
  int64_t logit_rows = 1;
};

// A model on its own device, and streams of tokens that it reads.
class Reader {
 public:
  Reader(const LanguageModelConfig& config, int64_t max_graph_rows, at::ScalarType products = at::kFloat) {
    const EmulatedBackends backends(
        {}, [this](EmulatedDevice& device) { device_ = &device; }, std::make_shared<GpuLoss>(), max_graph_rows);
    model_ = RandomModelOn(OnDevice("", kWorker, &backends), config, 5, products);
    auto cache = core::PagedCache::Create(*model_, core::PagesForStreams(model_->info(), kStreams));
    EXPECT_TRUE(cache.ok()) << cache.status();
    cache_ = *std::move(cache);
  }

  // All streams.
  void Forget() { sequences_.clear(); }

  absl::StatusOr<std::vector<float>> Step(const std::vector<Piece>& pieces) {
    std::vector<std::vector<int32_t>> tokens;
    std::vector<Slice> slices;
    for (const Piece& piece : pieces) {
      std::unique_ptr<core::CachedSequence>& sequence = sequences_[piece.stream];
      if (sequence == nullptr) sequence = *cache_->Begin({}, 0, kMaxTokens);
      tokens.emplace_back();
      for (int64_t i = 0; i < piece.tokens; ++i) {
        tokens.back().push_back(static_cast<int32_t>((7 * piece.stream + 5 * (sequence->position() + i)) % 31));
      }
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      Slice& slice = slices.emplace_back();
      slice.tokens = tokens[i];
      slice.logit_rows = pieces[i].logit_rows;
      EXPECT_TRUE(sequences_[pieces[i].stream]->FillIn(slice).ok());
    }
    const absl::StatusOr<StepResult> result = model_->Step(slices);
    if (!result.ok()) return result.status();
    was_replayed_ = result->counts.was_replayed;
    for (size_t i = 0; i < pieces.size(); ++i) sequences_[pieces[i].stream]->OnRead(tokens[i]);
    return std::vector<float>(result->logits.begin(), result->logits.end());
  }

  bool was_replayed() const { return was_replayed_; }
  EmulatedDevice& device() { return *device_; }
  LanguageModel& model() { return *model_; }

 private:
  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<core::PagedCache> cache_;
  std::map<int, std::unique_ptr<core::CachedSequence>> sequences_;
  bool was_replayed_ = false;
};

std::string Text(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += absl::StrCat(piece.stream, ": ", piece.tokens, "/", piece.logit_rows, " ");
  return text;
}

using Logits = std::vector<float>;

// Infinite if the sizes differ.
double LargestDifference(absl::Span<const float> a, absl::Span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

// One token of each of `streams` streams, from stream `first` on.
std::vector<Piece> Decode(int first, int64_t streams) {
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < streams; ++i) pieces.push_back({.stream = first + static_cast<int>(i)});
  return pieces;
}

// A product's bits depend on its number of rows. So the step without a graph has as many rows as the graph's shape,
// with other streams instead of padding. All chunks end at once.
TEST(StepGraphs, GiveTheBitsOfStepsWithoutAGraphRoundTheEdgesOfShapes) {
  for (const at::ScalarType products : {at::kFloat, at::kBFloat16}) {
    Reader graphs(QuickConfig(), kMaxRows, products), eager(QuickConfig(), 0, products);
    for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8}) {
      graphs.Forget();
      eager.Forget();
      const auto shape_rows = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
      for (int step = 0; step < 6; ++step) {
        SCOPED_TRACE(absl::StrCat(rows, " rows, step ", step));
        const auto said = graphs.Step(Decode(0, rows)), all = eager.Step(Decode(0, shape_rows));
        ASSERT_TRUE(said.ok()) << said.status();
        ASSERT_TRUE(all.ok()) << all.status();
        ASSERT_EQ(said->size(), rows * all->size() / shape_rows);
        EXPECT_EQ(*said, Logits(all->begin(), all->begin() + said->size()));
        EXPECT_TRUE(graphs.was_replayed());
        EXPECT_FALSE(eager.was_replayed());
      }
    }
  }
}

// Stream 0, one token a step and alone, against pieces of it among other streams, in steps of up to 16 rows: with and
// without graphs, by single rows and by tiles. The own products of such steps leave no difference (row_products.h).
TEST(StepsOfFewRows, GiveARowTheBitsOfItsHistory) {
  constexpr int64_t kTokens = 45, kRows = 16;
  for (const bool pre_layer_norm : {true, false}) {
    LanguageModelConfig config = SmallConfig();
    config.pre_layer_norm = pre_layer_norm;
    config.chunk_rank = 2;
    Reader alone(config, kMaxRows, at::kBFloat16), among(config, kMaxRows, at::kBFloat16);
    Logits expected, said;
    for (int64_t i = 0; i < kTokens; ++i) {
      const auto logits = alone.Step({{.stream = 0}});
      ASSERT_TRUE(logits.ok()) << logits.status();
      expected.insert(expected.end(), logits->begin(), logits->end());
    }
    const std::vector<int64_t> lengths = {5, 1, 14, 1, 1, 8, 2, 11, 1, 1};
    for (size_t step = 0; step < lengths.size(); ++step) {
      std::vector<Piece> pieces = {{.stream = 0, .tokens = lengths[step], .logit_rows = lengths[step]}};
      const int64_t others = std::min<int64_t>(kRows - lengths[step], static_cast<int64_t>(step) % 12);
      for (const Piece& piece : Decode(1, others)) pieces.push_back(piece);
      const auto logits = among.Step(pieces);
      ASSERT_TRUE(logits.ok()) << logits.status();
      said.insert(said.end(), logits->begin(), logits->begin() + lengths[step] * config.vocabulary_size);
    }
    EXPECT_EQ(said, expected) << "norms before: " << pre_layer_norm;
  }
}

TEST(StepGraphs, LeaveLargerStepsToTheirCalls) {
  Reader graphs(QuickConfig(), kMaxRows), eager(QuickConfig(), 0);
  for (const int64_t rows : {kMaxRows, kMaxRows + 1, kMaxRows}) {
    const auto said = graphs.Step(Decode(0, rows)), expected = eager.Step(Decode(0, rows));
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_LT(LargestDifference(*said, *expected), kRounding);
    EXPECT_EQ(graphs.was_replayed(), rows <= kMaxRows);
  }
}

TEST(StepGraphs, RunMixedSteps) {
  Reader graphs(QuickConfig(), 16), eager(QuickConfig(), 0);
  std::mt19937_64 random(3);
  int64_t replayed = 0;
  for (int step = 0; step < 30; ++step) {
    std::vector<Piece> pieces;
    for (int stream = 0; stream < kStreams; ++stream) {
      if (random() % 3 > 0) continue;
      const int64_t tokens = random() % 3 == 0 ? 1 + static_cast<int64_t>(random() % 14) : 1;
      pieces.push_back({stream, tokens, static_cast<int64_t>(random() % (tokens + 1))});
    }
    if (pieces.empty()) continue;
    const auto said = graphs.Step(pieces), expected = eager.Step(pieces);
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_LT(LargestDifference(*said, *expected), kRounding) << Text(pieces);
    replayed += graphs.was_replayed();
  }
  EXPECT_GT(replayed, 10);
}

}  // namespace longshort::models::step_graphs_test
