#include "models/families/language_model/transformer_ls.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/GradMode.h"
#include "core/cache/cache_grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/families/language_model/decoder.h"
#include "tests/core/fakes/stream_pages.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::transformer_ls_test {

using ::testing::HasSubstr;

std::vector<int32_t> RandomTokens(int64_t count, int64_t vocabulary_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocabulary_size);
  return tokens;
}

// One sequence in a served model: its history and pages.
class Sequence {
 public:
  Sequence(const LanguageModelInfo& info, int64_t max_tokens, core::FreePages& free)
      : info_(info), pages_(info, max_tokens, free) {}

  // A slice of the next `count` of `tokens`, with all logits.
  Slice Next(const std::vector<int32_t>& tokens, int64_t count) {
    Slice slice;
    slice.tokens = absl::MakeConstSpan(tokens).subspan(position_, count);
    slice.position = position_;
    slice.segment_start = position_ / info_.segment_length * info_.segment_length;
    slice.logit_rows = count;
    pages_.FillIn(slice);
    position_ += count;
    return slice;
  }
  int64_t position() const { return position_; }

 private:
  LanguageModelInfo info_;
  core::StreamPages pages_;
  int64_t position_ = 0;
};

// A served model with pages for some sequences of up to a given number of tokens.
struct Served {
  Served(std::unique_ptr<LanguageModel> served, int64_t sequences, int64_t max_tokens)
      : model(std::move(served)), pages(core::StreamPages::Needed(model->info(), max_tokens) * sequences) {
    EXPECT_TRUE(model->AllocateCache(pages).ok());
  }

  std::unique_ptr<LanguageModel> model;
  CachePages pages;
};

// Logits [tokens, V] of a stream read in slices of these lengths (the last repeats).
std::vector<float> ReadInSlices(Served& served, const std::vector<int32_t>& tokens,
                                const std::vector<int64_t>& lengths) {
  core::FreePages free(served.pages);  // with the rows of earlier streams
  Sequence sequence(served.model->info(), static_cast<int64_t>(tokens.size()), free);
  std::vector<float> logits;
  for (size_t step = 0; sequence.position() < static_cast<int64_t>(tokens.size()); ++step) {
    const int64_t left = static_cast<int64_t>(tokens.size()) - sequence.position();
    const Slice slice = sequence.Next(tokens, std::min(left, lengths[std::min(step, lengths.size() - 1)]));
    const auto result = served.model->Step({slice});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return logits;
    logits.insert(logits.end(), result->logits.begin(), result->logits.end());
  }
  return logits;
}

// The plain reference's logits [tokens, V]; whole segments only.
std::vector<float> Reference(const LanguageModelConfig& config, uint64_t seed, const std::vector<int32_t>& tokens) {
  const c10::NoGradGuard no_grad;
  const Decoder decoder = RandomDecoder(config, seed);
  StreamMemory memory = ZeroMemory(decoder, 1);
  at::Tensor ids = at::empty({1, static_cast<int64_t>(tokens.size())}, at::kLong);
  std::copy(tokens.begin(), tokens.end(), ids.mutable_data_ptr<int64_t>());
  const at::Tensor logits = ForwardSegments(decoder, ids, memory).contiguous();
  return {logits.const_data_ptr<float>(), logits.const_data_ptr<float>() + logits.numel()};
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

// Every switch that changes the arithmetic, one at a time and some together.
std::vector<LanguageModelConfig> Configurations() {
  std::vector<LanguageModelConfig> configs(9, SmallConfig());
  configs[1].pre_layer_norm = false;
  configs[2].activation = Activation::kRelu;
  configs[3].projection_bias = true;
  configs[4].chunk_rank = 3;
  configs[5].window_position_clamp = 4;
  configs[5].chunk_position_clamp = 3;
  configs[6].window_length = 150;  // over several pages, and no multiple of the chunk
  configs[6].memory_length = 320;
  configs[6].segment_length = 80;
  configs[7].pre_layer_norm = false;
  configs[7].projection_bias = true;
  configs[7].chunk_rank = 2;
  configs[7].memory_length = 240;
  configs[8].heads = 2;  // whose width is odd
  configs[8].model_width = 14;
  return configs;
}

class TransformerLsTest : public ::testing::TestWithParam<TestedBackend> {
 protected:
  static Served Serve(const LanguageModelConfig& config, uint64_t seed, int64_t sequences, int64_t max_tokens,
                      at::ScalarType product_type = at::kFloat) {
    return Served(RandomModelOn(GetParam(), config, seed, product_type), sequences, max_tokens);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, TransformerLsTest, ::testing::ValuesIn(QuickBackends()),
                         [](const auto& info) { return NameOf(info); });

TEST_P(TransformerLsTest, WholeSegmentsTokensAndAnyCutsGiveTheReferencesLogits) {
  for (const LanguageModelConfig& config : Configurations()) {
    SCOPED_TRACE(ToJson(config));
    const int64_t length = config.segment_length * (config.memory_length / config.segment_length + 4);
    const std::vector<int32_t> tokens = RandomTokens(length, config.vocabulary_size, 7);
    const std::vector<float> expected = Reference(config, 11, tokens);
    Served served = Serve(config, 11, 1, length);
    EXPECT_LT(LargestDifference(ReadInSlices(served, tokens, {config.segment_length}), expected), 3e-5);
    EXPECT_LT(LargestDifference(ReadInSlices(served, tokens, {1}), expected), 3e-5);
    EXPECT_LT(LargestDifference(ReadInSlices(served, tokens, {length}), expected), 3e-5);
    EXPECT_LT(LargestDifference(ReadInSlices(served, tokens, {5, 1, 1, 17, 2, 64, 3}), expected), 3e-5);
  }
}

TEST_P(TransformerLsTest, ASequenceDoesNotNoticeItsBatchMates) {
  const LanguageModelConfig config = SmallConfig();
  constexpr int64_t kSequences = 5, kLength = 90;
  Served served = Serve(config, 3, kSequences, kLength);
  std::vector<std::vector<int32_t>> tokens;
  std::vector<std::vector<float>> alone(kSequences), together(kSequences);
  for (int64_t i = 0; i < kSequences; ++i) {
    tokens.push_back(RandomTokens(kLength, config.vocabulary_size, 20 + i));
    alone[i] = ReadInSlices(served, tokens[i], {9});
  }

  std::mt19937_64 random(5);
  core::FreePages free(served.pages);
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (int64_t i = 0; i < kSequences; ++i)
    sequences.push_back(std::make_unique<Sequence>(served.model->info(), kLength, free));
  for (bool busy = true; busy;) {
    busy = false;
    std::vector<Slice> slices;
    std::vector<int64_t> owners;
    for (int64_t i = 0; i < kSequences; ++i) {
      const int64_t count = std::min<int64_t>(random() % 12, kLength - sequences[i]->position());
      busy = busy || sequences[i]->position() < kLength;
      if (count == 0) continue;
      slices.push_back(sequences[i]->Next(tokens[i], count));
      owners.push_back(i);
    }
    if (slices.empty()) continue;
    const auto result = served.model->Step(slices);
    ASSERT_TRUE(result.ok()) << result.status();
    const float* next = result->logits.data();
    for (size_t n = 0; n < slices.size(); ++n) {
      const int64_t floats = slices[n].logit_rows * config.vocabulary_size;
      together[owners[n]].insert(together[owners[n]].end(), next, next + floats);
      next += floats;
    }
  }
  for (int64_t i = 0; i < kSequences; ++i) EXPECT_LT(LargestDifference(alone[i], together[i]), 1e-5);
}

TEST_P(TransformerLsTest, AStepComputesItsNewRowsOnly) {
  const LanguageModelConfig config = SmallConfig();
  Served served = Serve(config, 1, 1, 200);
  core::FreePages free(served.pages);
  Sequence sequence(served.model->info(), 200, free);
  const std::vector<int32_t> tokens = RandomTokens(200, config.vocabulary_size, 1);
  int64_t read = 0;
  for (const int64_t count : {7, 1, 1, 30, 2, 100, 1}) {
    Slice slice = sequence.Next(tokens, count);
    slice.logit_rows = 1;
    const auto result = served.model->Step({slice});
    ASSERT_TRUE(result.ok()) << result.status();
    const int64_t finished = (read + count) / config.chunk_size - read / config.chunk_size;
    EXPECT_EQ(result->counts.projected_rows, count * config.layers);
    EXPECT_EQ(result->counts.compressed_rows, finished * config.chunk_rank * config.layers);
    EXPECT_EQ(result->counts.output_rows, 1);
    EXPECT_EQ(static_cast<int64_t>(result->logits.size()), config.vocabulary_size);
    read += count;
  }
}

TEST_P(TransformerLsTest, BFloat16StaysNearFloat32) {
  // Channels in pairs and an odd one, values in pairs of sixteens and an odd one.
  for (const int64_t head_width : {7, 8, 40}) {
    LanguageModelConfig config = SmallConfig();
    config.segment_length = 24;
    config.heads = 2;
    config.model_width = config.heads * head_width;
    const std::vector<int32_t> tokens = RandomTokens(96, config.vocabulary_size, 9);
    Served exact = Serve(config, 4, 1, 96);
    Served rounded = Serve(config, 4, 1, 96, at::kBFloat16);
    const std::vector<float> expected = ReadInSlices(exact, tokens, {24});
    const double spread =
        *std::max_element(expected.begin(), expected.end()) - *std::min_element(expected.begin(), expected.end());
    // Eight bits of mantissa, some dozen roundings deep.
    EXPECT_LT(LargestDifference(ReadInSlices(rounded, tokens, {24}), expected), 0.03 * spread) << head_width;
    EXPECT_LT(LargestDifference(ReadInSlices(rounded, tokens, {1}), expected), 0.03 * spread) << head_width;
    EXPECT_EQ(rounded.model->info().page_bytes.window * 2, exact.model->info().page_bytes.window);
  }
}

TEST_P(TransformerLsTest, Int8WeightsStayNearFloat32) {
  if (GetParam().device.kind != DeviceKind::kCpu) GTEST_SKIP() << "int8 is for the CPU";
  LanguageModelConfig config = SmallConfig();
  config.segment_length = 24;
  config.heads = 2;
  config.model_width = 2 * 35;  // a group of inputs, and one that is not full
  const std::vector<int32_t> tokens = RandomTokens(96, config.vocabulary_size, 9);
  Served exact = Serve(config, 4, 1, 96);
  Served rounded = Serve(config, 4, 1, 96, at::kChar);
  const std::vector<float> expected = ReadInSlices(exact, tokens, {24});
  const double spread =
      *std::max_element(expected.begin(), expected.end()) - *std::min_element(expected.begin(), expected.end());
  for (const int64_t length : {24, 5, 1}) {
    const double change = LargestDifference(ReadInSlices(rounded, tokens, {length}), expected);
    EXPECT_LT(change, 0.03 * spread) << length;
    EXPECT_GT(change, 0) << length;
  }
  EXPECT_EQ(rounded.model->info().page_bytes.window * 2, exact.model->info().page_bytes.window);
}

TEST_P(TransformerLsTest, RefusesSlicesThatBreakTheContract) {
  const LanguageModelConfig config = SmallConfig();
  Served served = Serve(config, 1, 1, 20);
  const std::vector<int32_t> tokens = RandomTokens(20, config.vocabulary_size, 1);
  const auto refusal = [&](auto&& damage) {
    core::FreePages free(served.pages);
    Sequence sequence(served.model->info(), 20, free);
    Slice slice = sequence.Next(tokens, 20);
    damage(slice);
    const absl::Status status = served.model->Step({slice}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::vector<int32_t> unknown = {3, static_cast<int32_t>(config.vocabulary_size)};
  EXPECT_THAT(refusal([&](Slice& slice) { slice.tokens = unknown; }), HasSubstr("token is 31"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.tokens = {}; }), HasSubstr("token count is 0"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.position = -1; }), HasSubstr("position is -1"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.position = 12; }), HasSubstr("segment_start is 0"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.segment_start = -4; }), HasSubstr("segment_start is -4"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.logit_rows = 21; }), HasSubstr("logit_rows is 21"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.open_chunk = 1; }), HasSubstr("open_chunk is 1"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.window_pages.first += 1; }), HasSubstr("window_pages"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.memory_pages.ids = {}; }), HasSubstr("memory_pages"));
  EXPECT_THAT(refusal([](Slice& slice) { slice.segment_pages.ids = {}; }), HasSubstr("segment_pages"));
  EXPECT_EQ(served.model->Step({}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace longshort::models::transformer_ls_test
