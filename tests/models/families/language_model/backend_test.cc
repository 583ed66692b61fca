// The behaviour of every backend of the language model, compared with the plain form of its layers
// (ForwardSegments).

#include "models/families/language_model/backend.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "models/families/language_model/decoder.h"
#include "tests/models/families/language_model/random_decoder.h"
#include "tests/models/families/language_model/tested_backends.h"

namespace longshort::models::backend_test {

constexpr uint64_t kSeed = 11;
constexpr CachePages kCapacity = {.window = 40, .segment = 40, .open_chunk = 3};

// Two vectors a chunk; the window is no multiple of a page; biases everywhere.
LanguageModelConfig TestedConfig() {
  LanguageModelConfig config = SmallConfig();
  config.chunk_rank = 2;
  config.window_length = 21;
  config.memory_length = 24;
  config.segment_length = 12;
  config.projection_bias = true;
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

// Feeds streams to a backend. Page n of each grid is page n plus an offset.
class LanguageModelBackendTest : public ::testing::TestWithParam<Case> {
 protected:
  explicit LanguageModelBackendTest(LanguageModelConfig config = TestedConfig())
      : config_(std::move(config)),
        prepared_(GetParam().backend.prepare(RandomDecoder(config_, kSeed, GetParam().pages))) {
    info_ = InfoOf(config_);
    info_.rows_per_page = prepared_.rows_per_page;
  }

  std::unique_ptr<LanguageModelBackend> MakeBackend() const {
    auto backend = *prepared_.new_backend(GetParam().backend.device);
    EXPECT_TRUE(backend->Allocate(kCapacity).ok());
    return backend;
  }

  static int32_t TokenAt(int64_t position, int64_t stream) {
    return static_cast<int32_t>((position * position + 7 * position + 13 * stream) % 31);
  }
  // The slice of tokens begin .. end-1. `copy`: number of the copy, whose pages follow those of earlier copies.
  Slice SliceOf(int64_t begin, int64_t end, int64_t stream = 0, int64_t copy = 0) {
    tokens_.clear();
    for (int64_t position = begin; position < end; ++position) tokens_.push_back(TokenAt(position, stream));
    const int64_t chunk = config_.chunk_size, rank = config_.chunk_rank;
    Slice slice;
    slice.tokens = tokens_;
    slice.position = begin;
    slice.logit_rows = end - begin;
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

  at::Tensor Run(LanguageModelBackend& backend, absl::Span<const Slice> slices) const {
    const StepOutput output = backend.RunStep(PlanStep(slices, info_));
    return at::tensor(at::ArrayRef<float>(output.logits.data(), output.logits.size()))
        .view({-1, config_.vocabulary_size});
  }
  // Reads tokens begin .. end-1. Returns their logits [tokens, V].
  at::Tensor Read(LanguageModelBackend& backend, int64_t begin, int64_t end, int64_t stream = 0, int64_t copy = 0) {
    return Run(backend, {SliceOf(begin, end, stream, copy)});
  }

  // Logits of a stream's first tokens, which are whole segments.
  at::Tensor Reference(int64_t tokens) const {
    const Decoder decoder = RandomDecoder(config_, kSeed, GetParam().pages);
    StreamMemory memory = ZeroMemory(decoder, 1);
    at::Tensor ids = at::empty({1, tokens}, at::kLong);
    for (int64_t i = 0; i < tokens; ++i) ids.mutable_data_ptr<int64_t>()[i] = TokenAt(i, 0);
    return ForwardSegments(decoder, ids, memory).squeeze(0);
  }

  // For bfloat16, of logits up to 8, whose last bit is 1/32.
  double Tolerance() const { return GetParam().pages == at::kFloat ? 5e-6 : 0.04; }
  static double LargestDifference(const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  }

  c10::InferenceMode inference_;
  const LanguageModelConfig config_;
  LanguageModelInfo info_;
  const PreparedDevice prepared_;
  const std::unique_ptr<LanguageModelBackend> backend_ = MakeBackend();
  std::vector<int32_t> tokens_;
  std::vector<PageId> window_ids_, memory_ids_, segment_ids_;
};
INSTANTIATE_TEST_SUITE_P(Backends, LanguageModelBackendTest, ::testing::ValuesIn(Cases()), NameOfCase);

// The same with norms behind the sums, and another activation.
class PostNormBackendTest : public LanguageModelBackendTest {
 protected:
  PostNormBackendTest() : LanguageModelBackendTest(PostNormConfig()) {}

  static LanguageModelConfig PostNormConfig() {
    LanguageModelConfig config = TestedConfig();
    config.pre_layer_norm = false;
    config.activation = Activation::kRelu;
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, PostNormBackendTest, ::testing::ValuesIn(Cases()), NameOfCase);

TEST_P(LanguageModelBackendTest, LogitsAreThoseOfThePlainFormHoweverTheStreamIsCut) {
  constexpr int64_t kTokens = 84;
  const at::Tensor expected = Reference(kTokens);
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{1}, std::vector<int64_t>{kTokens}, std::vector<int64_t>{5, 1, 17, 2, 3}}) {
    const auto backend = MakeBackend();
    std::vector<at::Tensor> logits;
    for (int64_t begin = 0, step = 0; begin < kTokens; ++step) {
      const int64_t end = std::min(kTokens, begin + lengths[step % lengths.size()]);
      logits.push_back(Read(*backend, begin, end));
      begin = end;
    }
    EXPECT_LT(LargestDifference(at::cat(logits), expected), Tolerance()) << lengths[0];
  }
}

TEST_P(PostNormBackendTest, LogitsAreThoseOfThePlainForm) {
  constexpr int64_t kTokens = 36;
  const at::Tensor first = Read(*backend_, 0, 10), rest = Read(*backend_, 10, kTokens);
  EXPECT_LT(LargestDifference(at::cat({first, rest}), Reference(kTokens)), Tolerance());
}

TEST_P(LanguageModelBackendTest, SlicesOfAStepSeeTheirOwnRows) {
  Read(*backend_, 0, 33);
  Read(*backend_, 0, 25, 1, 1);
  // Both at once, from there on.
  Slice first = SliceOf(33, 36);
  const std::vector<int32_t> first_tokens = tokens_;
  const std::vector<PageId> window = window_ids_, memory = memory_ids_, segment = segment_ids_;
  first.tokens = first_tokens;
  first.window_pages.ids = window;
  first.memory_pages.ids = memory;
  first.segment_pages.ids = segment;
  const at::Tensor together = Run(*backend_, {first, SliceOf(25, 30, 1, 1)});

  // Products with another number of rows may round otherwise.
  for (const auto& [stream, from, to, place] : {std::tuple(0, 33, 36, 0), std::tuple(1, 25, 30, 3)}) {
    const auto alone = MakeBackend();
    Read(*alone, 0, from, stream);
    EXPECT_LT(LargestDifference(Read(*alone, from, to, stream), together.narrow(0, place, to - from)), Tolerance());
  }
}

// Rows of the same step are requested or not; the others are read alike.
TEST_P(LanguageModelBackendTest, ReturnsTheLogitsOfTheRequestedRows) {
  Slice slice = SliceOf(0, 9);
  const at::Tensor all = Run(*backend_, {slice});
  slice.logit_rows = 2;
  EXPECT_LT(LargestDifference(Run(*backend_, {slice}), all.narrow(0, 7, 2)), Tolerance());
  slice.logit_rows = 0;
  EXPECT_EQ(Run(*backend_, {slice}).numel(), 0);
}

// Token 30 of the same history, on pages that were copied, or written from the bytes that were read.
TEST_P(LanguageModelBackendTest, PagesThatAreCopiedOrReadAndWrittenServeLikeThoseOfTheStream) {
  constexpr int64_t kTokens = 30;
  Read(*backend_, 0, kTokens);
  const auto other = MakeBackend();
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
  // Two more tokens fill a chunk.
  const at::Tensor copied = Read(*backend_, kTokens, kTokens + 3, 0, 1);
  const at::Tensor moved = Read(*other, kTokens, kTokens + 3);
  const at::Tensor stayed = Read(*backend_, kTokens, kTokens + 3);
  EXPECT_TRUE(at::equal(copied, stayed));
  EXPECT_TRUE(at::equal(moved, stayed));
}

// All state of an open chunk is on its page: a copy fills up, layer by layer, as the original would have.
TEST_P(LanguageModelBackendTest, AnOpenChunkContinuesWhereItsPageWent) {
  Read(*backend_, 0, 3);
  const auto bytes = backend_->ReadPage(PageKind::kOpenChunk, 0, {0, 3});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ASSERT_TRUE(backend_->WritePage(PageKind::kOpenChunk, 2, *bytes).ok());
  const auto vectors = [&](PageId open_chunk) {
    Slice slice = SliceOf(3, 4);
    slice.open_chunk = open_chunk;
    Run(*backend_, {slice});
    return *backend_->ReadPage(PageKind::kSegment, 0, {0, 2}) + *backend_->ReadPage(PageKind::kSegment, 10, {0, 2});
  };
  const std::string original = vectors(0);
  EXPECT_EQ(vectors(2), original);
  EXPECT_NE(original, std::string(original.size(), '\0'));
}

// A page that is read may also have another sequence's rows.
TEST_P(LanguageModelBackendTest, ReadsNothingOfOtherRows) {
  const auto read = [&](int64_t before) {
    const auto backend = MakeBackend();
    Read(*backend, 0, 30, before);  // the previous contents
    Read(*backend, 0, 6);
    return std::vector<std::string>{*backend->ReadPage(PageKind::kWindow, 0, {2, 6}),
                                    *backend->ReadPage(PageKind::kSegment, 0, {0, 2}),
                                    *backend->ReadPage(PageKind::kOpenChunk, 0, {0, 2})};
  };
  const std::vector<std::string> bytes = read(1);
  EXPECT_EQ(bytes, read(0));
  EXPECT_NE(bytes[0], std::string(bytes[0].size(), '\0'));
  EXPECT_EQ(static_cast<int64_t>(bytes[0].size()), prepared_.page_bytes.window);
  EXPECT_EQ(static_cast<int64_t>(bytes[1].size()), prepared_.page_bytes.segment);
  EXPECT_EQ(static_cast<int64_t>(bytes[2].size()), prepared_.page_bytes.open_chunk);
}

TEST_P(LanguageModelBackendTest, RowsThatAreReadInPartsAreThoseOfTheWhole) {
  Read(*backend_, 0, 6);
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
        const std::string layout = tested.prepare(RandomDecoder(config, 5, type)).cache_layout;
        EXPECT_TRUE(layouts.insert(layout).second) << tested.name << ", " << heads;
      }
    }
  }
}

TEST_P(LanguageModelBackendTest, RefusesACacheThatNoMachineHas) {
  for (const int64_t pages : {int64_t{1} << 40, int64_t{1} << 58}) {
    const absl::Status status = backend_->Allocate({.window = pages, .segment = 1, .open_chunk = 1});
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

}  // namespace longshort::models::backend_test
