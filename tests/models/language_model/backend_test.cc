// The behaviour of every backend of the language model, compared with the reference ops (models/attention).

#include "models/language_model/backend.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ATen/CPUGeneratorImpl.h"
#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "models/attention/causal_attention.h"
#include "models/attention/dynamic_projection.h"
#include "tests/models/language_model/random_decoder.h"
#include "tests/models/language_model/tested_backends.h"

namespace longshort::models::backend_test {

constexpr int64_t kLayer = 1;
constexpr CachePages kCapacity = {.window = 40, .segment = 40, .open_chunk = 3};

// Two vectors a chunk; the window is no multiple of a page.
LanguageModelConfig TestedConfig() {
  LanguageModelConfig config = SmallConfig();
  config.chunk_rank = 2;
  config.window_length = 21;
  config.memory_length = 24;
  config.segment_length = 12;
  return config;
}

struct Case {
  TestedBackend backend;
  at::ScalarType pages = at::kFloat;
};
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const TestedBackend& backend : TestedBackends()) {
    cases.push_back({backend, at::kFloat});
    cases.push_back({backend, at::kBFloat16});
  }
  return cases;
}
std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) {
  return info.param.backend.name + (info.param.pages == at::kFloat ? "Float32" : "BFloat16");
}

// One stream, as random results of a layer for each row and chunk.
struct Stream {
  at::Tensor input, keys_values, logits, window;  // [tokens, ...], as LayerRows
  at::Tensor memory, segment;                     // [tokens / C * R, 2, d]
  at::Tensor queries;                             // [tokens, d]
};

// Feeds one stream to a backend. Page n of each grid is page n plus an offset.
class LanguageModelBackendTest : public ::testing::TestWithParam<Case> {
 protected:
  LanguageModelBackendTest() {
    Prepare(*backend_);
    info_ = InfoOf(config_);
    info_.rows_per_page = prepared_.rows_per_page;
  }

  std::unique_ptr<LanguageModelBackend> Another() const { return *prepared_.new_backend(GetParam().backend.device); }
  // Gives it empty pages, and random rows of zero memory.
  void Prepare(LanguageModelBackend& backend) {
    EXPECT_TRUE(backend.Allocate(kCapacity).ok());
    backend.WriteZeroRows(kLayer, zero_in_window_, zero_in_segment_);
  }

  at::Tensor Random(at::IntArrayRef shape) { return at::normal(0.0, 1.0, shape, generator_); }
  Stream RandomStream(int64_t tokens) {
    const int64_t d = config_.model_width, vectors = tokens / config_.chunk_size * config_.chunk_rank;
    return {.input = Random({tokens, d}),
            .keys_values = Random({tokens, 2, d}),
            .logits = Random({tokens, config_.heads * config_.chunk_rank}),
            .window = Random({tokens, 2, d}),
            .memory = Random({vectors, 2, d}),
            .segment = Random({vectors, 2, d}),
            .queries = Random({tokens, d})};
  }

  // The slice of tokens begin .. end-1. `copy`: number of the copy, whose pages follow those of earlier copies.
  Slice SliceOf(int64_t begin, int64_t end, int64_t copy = 0) {
    tokens_.assign(end - begin, 1);
    const int64_t chunk = config_.chunk_size, rank = config_.chunk_rank;
    Slice slice;
    slice.tokens = tokens_;
    slice.position = begin;
    slice.segment_start = begin / config_.segment_length * config_.segment_length;
    slice.open_chunk = static_cast<PageId>(copy);
    slice.window_pages = Pages(begin - config_.window_length + 1, end, copy * 10, window_ids_);
    const int64_t end_vector = end / chunk * rank;
    slice.memory_pages =
        Pages((slice.segment_start - config_.memory_length) / chunk * rank, end_vector, copy * 20, memory_ids_);
    slice.segment_pages = Pages(slice.segment_start / chunk * rank, end_vector, copy * 20 + 10, segment_ids_);
    return slice;
  }
  PageRange Pages(int64_t first_row, int64_t end_row, int64_t offset, std::vector<PageId>& ids) const {
    const int64_t rows = info_.rows_per_page;
    const int64_t first = first_row >= 0 ? first_row / rows : -((rows - 1 - first_row) / rows);
    ids.clear();
    for (int64_t page = first; page * rows < end_row; ++page) {
      ids.push_back(page < 0 ? kZeroPage : static_cast<PageId>(page + offset));
    }
    return {.first = first, .ids = ids};
  }

  // Rows of a stream that a step over begin .. end-1 has, and the vectors of the chunks that it fills.
  LayerRows RowsOf(const Stream& stream, int64_t begin, int64_t end) const {
    const int64_t first = begin / config_.chunk_size * config_.chunk_rank;
    const int64_t vectors = end / config_.chunk_size * config_.chunk_rank - first;
    const auto rows = [&](const at::Tensor& all) { return all.narrow(0, begin, end - begin); };
    LayerRows found{.input = rows(stream.input),
                    .keys_values = rows(stream.keys_values),
                    .projection_logits = rows(stream.logits),
                    .window = rows(stream.window),
                    .memory = {},
                    .segment = {}};
    if (vectors > 0) {
      found.memory = stream.memory.narrow(0, first, vectors);
      found.segment = stream.segment.narrow(0, first, vectors);
    }
    return found;
  }

  // Reads tokens begin .. end-1. Returns the output of their attention, [tokens, d].
  at::Tensor Read(LanguageModelBackend& backend, const Stream& stream, int64_t begin, int64_t end, int64_t copy = 0) {
    const StepPlan plan = PlanStep({SliceOf(begin, end, copy)}, info_);
    backend.BeginStep(plan);
    backend.WriteRows(kLayer, RowsOf(stream, begin, end));
    const at::Tensor attended = backend.Attend(kLayer, stream.queries.narrow(0, begin, end - begin));
    backend.EndStep({});
    return attended;
  }

  // The reference's result for the tokens of one chunk.
  at::Tensor Reference(const Stream& stream, int64_t chunk) const {
    const int64_t size = config_.chunk_size, rank = config_.chunk_rank, begin = chunk * size;
    const int64_t start = begin / config_.segment_length * config_.segment_length;
    const int64_t first = (start - config_.memory_length) / size * rank, segment = start / size * rank;
    const auto heads = [&](const at::Tensor& rows) { return rows.view({1, rows.size(0), config_.heads, -1}); };
    // Rows first .. end-1, those before the first token being `zero`, keys (0) or values (1).
    const auto part = [&](const at::Tensor& rows, const at::Tensor& zero, int64_t from, int64_t to, int64_t which) {
      const at::Tensor before = zero.expand({std::clamp<int64_t>(-from, 0, to - from), 2, config_.model_width});
      const int64_t there = std::max<int64_t>(from, 0);
      return at::cat({before, rows.narrow(0, there, std::max<int64_t>(to - there, 0))}).select(1, which);
    };
    const auto window = [&](int64_t which) {
      return heads(part(stream.window, zero_in_window_, begin - config_.window_length + 1, begin + size, which));
    };
    const auto vectors = [&](int64_t which) {
      return heads(at::cat({part(stream.memory, zero_in_segment_, first, segment, which),
                            part(stream.segment, zero_in_segment_, segment, chunk * rank, which)}));
    };
    return CausalAttention(heads(stream.queries.narrow(0, begin, size)), window(0), window(1), vectors(0), vectors(1),
                           chunk * rank - first, size, rank, positions_)
        .view({size, config_.model_width});
  }

  double Tolerance() const { return GetParam().pages == at::kFloat ? 2e-6 : 0.03; }
  static double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  }

  c10::InferenceMode inference_;
  const LanguageModelConfig config_ = TestedConfig();
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
  Decoder decoder_ = RandomDecoder(config_, 11, GetParam().pages);
  const RelativePositions positions_ =
      decoder_.layers[kLayer].Positions(decoder_.WindowPositionTable(), decoder_.ChunkPositionTable());
  const at::Tensor zero_in_window_ = Random({1, 2, config_.model_width});
  const at::Tensor zero_in_segment_ = Random({1, 2, config_.model_width});
  LanguageModelInfo info_;
  const PreparedDevice prepared_ = GetParam().backend.prepare(decoder_);
  const std::unique_ptr<LanguageModelBackend> backend_ = Another();
  std::vector<int32_t> tokens_;
  std::vector<PageId> window_ids_, memory_ids_, segment_ids_;
};
INSTANTIATE_TEST_SUITE_P(Backends, LanguageModelBackendTest, ::testing::ValuesIn(Cases()), NameOfCase);

TEST_P(LanguageModelBackendTest, AttendsLikeTheReferenceHoweverTheStreamIsCut) {
  constexpr int64_t kChunks = 20;
  const int64_t tokens = kChunks * config_.chunk_size;
  const Stream stream = RandomStream(tokens);
  std::vector<at::Tensor> expected;
  for (int64_t chunk = 0; chunk < kChunks; ++chunk) expected.push_back(Reference(stream, chunk));
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{1}, std::vector<int64_t>{tokens}, std::vector<int64_t>{5, 1, 17, 2, 3}}) {
    Prepare(*backend_);
    std::vector<at::Tensor> attended;
    for (int64_t begin = 0, step = 0; begin < tokens; ++step) {
      const int64_t end = std::min(tokens, begin + lengths[step % lengths.size()]);
      attended.push_back(Read(*backend_, stream, begin, end));
      begin = end;
    }
    EXPECT_LT(LargestDifference(at::cat(attended), at::cat(expected)), Tolerance()) << lengths[0];
  }
}

TEST_P(LanguageModelBackendTest, SlicesOfAStepSeeTheirOwnRows) {
  const Stream first = RandomStream(36), second = RandomStream(30);
  Read(*backend_, first, 0, 33);
  Read(*backend_, second, 0, 25, 1);
  // Both at once, from there on.
  Slice of_first = SliceOf(33, 36);
  const std::vector<int32_t> first_tokens = tokens_;
  const std::vector<PageId> window = window_ids_, memory = memory_ids_, segment = segment_ids_;
  of_first.tokens = first_tokens;
  of_first.window_pages.ids = window;
  of_first.memory_pages.ids = memory;
  of_first.segment_pages.ids = segment;
  const StepPlan plan = PlanStep({of_first, SliceOf(25, 30, 1)}, info_);
  const LayerRows a = RowsOf(first, 33, 36), b = RowsOf(second, 25, 30);
  backend_->BeginStep(plan);
  backend_->WriteRows(kLayer, {.input = at::cat({a.input, b.input}),
                               .keys_values = at::cat({a.keys_values, b.keys_values}),
                               .projection_logits = at::cat({a.projection_logits, b.projection_logits}),
                               .window = at::cat({a.window, b.window}),
                               .memory = at::cat({a.memory, b.memory}),
                               .segment = at::cat({a.segment, b.segment})});
  const at::Tensor together =
      backend_->Attend(kLayer, at::cat({first.queries.narrow(0, 33, 3), second.queries.narrow(0, 25, 5)}));
  backend_->EndStep({});

  const auto alone = Another();
  for (const auto& [stream, from, to, place] : {std::tuple(&first, 33, 36, 0), std::tuple(&second, 25, 30, 3)}) {
    Prepare(*alone);
    Read(*alone, *stream, 0, from);
    EXPECT_TRUE(at::equal(Read(*alone, *stream, from, to), together.narrow(0, place, to - from)));
  }
}

TEST_P(LanguageModelBackendTest, MixesChunksOfNewAndKeptRowsLikeTheReference) {
  constexpr int64_t kTokens = 16;
  const Stream stream = RandomStream(kTokens);
  const at::Tensor weights = ProjectionWeights(stream.logits.unsqueeze(0), config_.heads, config_.chunk_size);
  const auto expected = [&](const at::Tensor& rows) { return MixChunks(weights, rows.unsqueeze(0)).squeeze(0); };
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{1}, std::vector<int64_t>{16},
                                              std::vector<int64_t>{2, 5, 1}, std::vector<int64_t>{3, 4, 6}}) {
    std::vector<at::Tensor> inputs, keys_values;
    for (int64_t begin = 0, step = 0; begin < kTokens; ++step) {
      const int64_t end = std::min(kTokens, begin + lengths[step % lengths.size()]);
      const StepPlan plan = PlanStep({SliceOf(begin, end)}, info_);
      const LayerRows rows = RowsOf(stream, begin, end);
      backend_->BeginStep(plan);
      if (plan.full_chunks() > 0) {
        const MixedChunks mixed = backend_->MixChunks(kLayer, rows);
        inputs.push_back(mixed.inputs);
        keys_values.push_back(mixed.keys_values);
      }
      backend_->WriteRows(kLayer, rows);
      backend_->EndStep({});
      begin = end;
    }
    EXPECT_LT(LargestDifference(at::cat(inputs), expected(stream.input)), 2e-6);
    const at::Tensor mixed = at::cat(keys_values);
    EXPECT_LT(LargestDifference(mixed.select(1, 0), expected(stream.keys_values.select(1, 0))), 2e-6);
    EXPECT_LT(LargestDifference(mixed.select(1, 1), expected(stream.keys_values.select(1, 1))), 2e-6);
  }
}

// Token 30 of the same history, on pages that were copied, or written from the bytes that were read.
TEST_P(LanguageModelBackendTest, PagesThatAreCopiedOrReadAndWrittenServeLikeThoseOfTheStream) {
  constexpr int64_t kTokens = 30;
  const Stream stream = RandomStream(kTokens + 1);
  Read(*backend_, stream, 0, kTokens);
  const auto other = Another();
  Prepare(*other);
  const auto move = [&](PageKind kind, PageId from, PageId to, int64_t rows) {
    ASSERT_TRUE(backend_->CopyPage(kind, from, to).ok());
    const auto bytes = backend_->ReadPage(kind, from, {0, rows});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(other->WritePage(kind, from, *bytes).ok());
  };
  for (PageId page = 0; page < 10; ++page) {
    move(PageKind::kWindow, page, page + 10, info_.rows_per_page);
    move(PageKind::kSegment, page, page + 20, info_.rows_per_page);
    move(PageKind::kSegment, page + 10, page + 30, info_.rows_per_page);
  }
  move(PageKind::kOpenChunk, 0, 1, config_.chunk_size);
  const at::Tensor copied = Read(*backend_, stream, kTokens, kTokens + 1, 1);
  const at::Tensor moved = Read(*other, stream, kTokens, kTokens + 1);
  const at::Tensor stayed = Read(*backend_, stream, kTokens, kTokens + 1);
  EXPECT_TRUE(at::equal(copied, stayed));
  EXPECT_TRUE(at::equal(moved, stayed));
}

// All state of an open chunk is on its page: a copy fills up, layer by layer, as the original would have.
TEST_P(LanguageModelBackendTest, AnOpenChunkGoesOnWhereItsPageWentTo) {
  const Stream stream = RandomStream(4);
  Read(*backend_, stream, 0, 3);
  const auto bytes = backend_->ReadPage(PageKind::kOpenChunk, 0, {0, 3});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(backend_->WritePage(PageKind::kOpenChunk, 2, *bytes).ok());
  const auto last = [&](int64_t copy) {
    const StepPlan plan = PlanStep({SliceOf(3, 4, copy)}, info_);
    backend_->BeginStep(plan);
    const MixedChunks mixed = backend_->MixChunks(kLayer, RowsOf(stream, 3, 4));
    backend_->EndStep({});
    return mixed.inputs;
  };
  EXPECT_TRUE(at::equal(last(2), last(0)));
}

// A page that is read may also have another sequence's rows.
TEST_P(LanguageModelBackendTest, ReadsNothingOfOtherRows) {
  const Stream stream = RandomStream(30), other = RandomStream(30);
  const auto read = [&](const Stream& before) {
    Prepare(*backend_);
    Read(*backend_, before, 0, 30);  // the previous contents
    Read(*backend_, stream, 0, 6);
    return std::vector<std::string>{*backend_->ReadPage(PageKind::kWindow, 0, {2, 6}),
                                    *backend_->ReadPage(PageKind::kSegment, 0, {0, 2}),
                                    *backend_->ReadPage(PageKind::kOpenChunk, 0, {0, 2})};
  };
  const std::vector<std::string> bytes = read(other);
  EXPECT_EQ(bytes, read(stream));
  EXPECT_NE(bytes[0], std::string(bytes[0].size(), '\0'));
  EXPECT_EQ(static_cast<int64_t>(bytes[0].size()), prepared_.page_bytes.window);
  EXPECT_EQ(static_cast<int64_t>(bytes[1].size()), prepared_.page_bytes.segment);
  EXPECT_EQ(static_cast<int64_t>(bytes[2].size()), prepared_.page_bytes.open_chunk);
}

TEST_P(LanguageModelBackendTest, RowsThatAreReadInPartsAreThoseOfTheWhole) {
  Read(*backend_, RandomStream(6), 0, 6);
  const std::string whole = *backend_->ReadPage(PageKind::kWindow, 0, {0, 6});
  std::string parts(whole.size(), '\0');
  for (const PageRows& rows : {PageRows{0, 1}, PageRows{1, 4}, PageRows{4, 6}}) {
    const std::string part = *backend_->ReadPage(PageKind::kWindow, 0, rows);
    ASSERT_EQ(part.size(), whole.size());
    for (size_t i = 0; i < part.size(); ++i) parts[i] = static_cast<char>(parts[i] | part[i]);
  }
  EXPECT_EQ(parts, whole);
}

TEST(CacheLayouts, AreEqualOnlyWherePagesAre) {
  std::set<std::string> layouts;
  for (const TestedBackend& tested : TestedBackends()) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      for (const int64_t heads : {3, 1}) {  // of 8 and of 40 channels
        LanguageModelConfig config = SmallConfig();
        config.heads = heads;
        if (heads == 1) config.model_width = 40;
        Decoder decoder = RandomDecoder(config, 5, type);
        EXPECT_TRUE(layouts.insert(tested.prepare(decoder).cache_layout).second) << tested.name << ", " << heads;
      }
    }
  }
}

TEST_P(LanguageModelBackendTest, ThePlanComesToTheDeviceAndLogitsComeBackInOnePiece) {
  const StepPlan plan = PlanStep({SliceOf(0, 9)}, info_);
  const at::Tensor numbers = backend_->BeginStep(plan).cpu();
  ASSERT_EQ(numbers.numel(), static_cast<int64_t>(plan.numbers.size()));
  EXPECT_TRUE(std::equal(plan.numbers.begin(), plan.numbers.end(), numbers.const_data_ptr<int64_t>()));
  const at::Tensor logits = Random({2, config_.vocabulary_size});
  const auto back = backend_->EndStep(logits.clone());
  EXPECT_TRUE(std::equal(back.begin(), back.end(), logits.const_data_ptr<float>()));
  EXPECT_EQ(static_cast<int64_t>(back.size()), logits.numel());
}

TEST_P(LanguageModelBackendTest, RefusesACacheThatNoMachineHas) {
  for (const int64_t pages : {int64_t{1} << 40, int64_t{1} << 58}) {
    const absl::Status status = backend_->Allocate({.window = pages, .segment = 1, .open_chunk = 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

}  // namespace longshort::models::backend_test
