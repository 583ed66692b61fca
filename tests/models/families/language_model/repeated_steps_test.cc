// Repeated steps give the same bits, however a backend queues them.

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "models/families/language_model/transformer_ls.h"
#include "tests/core/fakes/stream_pages.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::repeated_steps_test {

constexpr int64_t kStreams = 3;
// For each stream: single tokens, after a prompt that fills chunks and begins another.
constexpr int64_t kPromptTokens = 10, kTokens = 17;
constexpr int64_t kRounds = 3;

class RepeatedStepsTest : public testing::TestWithParam<TestedBackend> {};
INSTANTIATE_TEST_SUITE_P(Backends, RepeatedStepsTest, ::testing::ValuesIn(TestedBackends()),
                         NameOf<testing::TestParamInfo<TestedBackend>>);

// Logits of all steps of streams that begin one step after the other: steps have 1 to kStreams slices of 1 token or of
// a prompt.
std::vector<float> ReadStreams(LanguageModel& model, const CachePages& capacity) {
  const LanguageModelInfo& info = model.info();
  core::FreePages free(capacity);
  std::vector<core::StreamPages> pages;
  std::vector<std::vector<int32_t>> tokens(kStreams);
  std::vector<int64_t> positions(kStreams, 0);
  for (int64_t stream = 0; stream < kStreams; ++stream) {
    pages.emplace_back(info, kTokens, free);
    for (int64_t i = 0; i < kTokens; ++i) {
      tokens[stream].push_back(static_cast<int32_t>((i * 7 + stream * 5) % info.vocabulary_size));
    }
  }
  std::vector<float> logits;
  for (int64_t step = 0; positions.back() < kTokens; ++step) {
    std::vector<Slice> slices;
    for (int64_t stream = 0; stream < std::min(kStreams, step + 1); ++stream) {
      if (positions[stream] == kTokens) continue;
      const int64_t count = positions[stream] == 0 ? kPromptTokens : 1;
      Slice slice;
      slice.tokens = absl::MakeConstSpan(tokens[stream]).subspan(positions[stream], count);
      slice.position = positions[stream];
      slice.segment_start = positions[stream] / info.segment_length * info.segment_length;
      slice.logit_rows = 1;
      pages[stream].FillIn(slice);
      positions[stream] += count;
      slices.push_back(slice);
    }
    const auto result = model.Step(slices);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) break;
    logits.insert(logits.end(), result->logits.begin(), result->logits.end());
  }
  return logits;
}

TEST_P(RepeatedStepsTest, StepsThatComeAgainHaveTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const std::unique_ptr<LanguageModel> model = RandomModelOn(GetParam(), SmallConfig(), 7, type);
    const CachePages needed = core::StreamPages::Needed(model->info(), kTokens) * kStreams;
    ASSERT_TRUE(model->AllocateCache(needed).ok());
    const std::vector<float> first = ReadStreams(*model, needed);
    ASSERT_EQ(first.size(), kStreams * (kTokens - kPromptTokens + 1) * model->info().vocabulary_size);
    for (int64_t round = 1; round < kRounds; ++round) EXPECT_EQ(ReadStreams(*model, needed), first) << round;
  }
}

// A capture must not take the other worker's work into its graph, nor fail because of it.
TEST_P(RepeatedStepsTest, KeepTheirBitsWhileAnotherWorkerCapturesItsGraphs) {
  const LanguageModelWeights weights = RandomWeightsOn(GetParam(), SmallConfig(), 7);
  const std::unique_ptr<LanguageModel> stepping = weights.NewReplica(GetParam().device).value();
  const std::unique_ptr<LanguageModel> capturing = weights.NewReplica(GetParam().device).value();
  const CachePages needed = core::StreamPages::Needed(weights.info(), kTokens) * kStreams;
  ASSERT_TRUE(stepping->AllocateCache(needed).ok());
  const std::vector<float> expected = ReadStreams(*stepping, needed);
  std::atomic<bool> has_captured = false;
  std::thread other([&] {
    for (int64_t round = 0; round < kRounds; ++round) {
      const absl::Status status = capturing->AllocateCache(needed);
      EXPECT_TRUE(status.ok()) << status;
    }
    has_captured = true;
  });
  while (!has_captured) EXPECT_EQ(ReadStreams(*stepping, needed), expected);
  other.join();
  EXPECT_EQ(ReadStreams(*capturing, needed), expected);
}

}  // namespace longshort::models::repeated_steps_test
