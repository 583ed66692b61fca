// Compares the classifiers' layers with GPU kernels, on an emulated GPU, with the same layers on the CPU.

#include "models/ops/item_attention/gpu_item_attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ATen/Functions.h"
#include "ATen/TensorOperators.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/gpu_device.h"
#include "models/families/text_classifier/text_layer.h"
#include "models/families/text_classifier/text_network.h"
#include "models/families/vil/vil_attention.h"
#include "models/ops/grid_attention/grid_attention.h"
#include "models/ops/item_attention/item_attention.h"
#include "tests/base/status_matchers.h"
#include "tests/models/families/cvt/random_cvt.h"
#include "tests/models/families/text_classifier/random_text_model.h"
#include "tests/models/gpu/emulated_device.h"

namespace longshort::models::gpu_item_attention_test {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr int64_t kHeads = 2, kWidth = 24, kRank = 3;
// Error bound for a layer's output, whose numbers are about 1.
constexpr double kRounding = 2e-5;

at::Tensor Random(at::IntArrayRef shape) { return at::randn(shape, at::kFloat); }
Linear RandomLinear(int64_t out, int64_t in) {
  return {.weight = Random({out, in}) / std::sqrt(static_cast<double>(in)), .bias = Random({out})};
}
LayerNorm RandomNorm() { return {.gain = Random({kWidth}), .bias = Random({kWidth})}; }
double LargestDifference(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<float>(); }

class GpuItemAttentionTest : public ::testing::Test {
 protected:
  GpuItemAttentionTest() {
    at::manual_seed(1);
    const auto open = [this]() -> absl::StatusOr<std::unique_ptr<GpuDevice>> {
      std::unique_ptr<EmulatedDevice> opened = MakeEmulatedDevice();
      device_ = opened.get();
      return opened;
    };
    attention_ =
        MakeGpuItemAttention({.tensors = at::kCPU, .open = open, .loss = std::make_shared<GpuLoss>()}, 128).value();
  }

  EmulatedDevice* device_ = nullptr;
  std::unique_ptr<GpuItemAttention> attention_;
};

struct TextCase {
  std::string name;
  bool has_cls = true;
  bool has_landmarks = true;
  int64_t window = 16;
  int64_t taps = 0;
};
void PrintTo(const TextCase& tested, std::ostream* to) { *to << tested.name; }

class GpuTextLayerTest : public GpuItemAttentionTest, public ::testing::WithParamInterface<TextCase> {
 protected:
  static TextLayer RandomLayer(const TextCase& tested) {
    TextLayer layer;
    for (LayerNorm* const norm : {&layer.norm1, &layer.norm2, &layer.window_norm, &layer.shared_norm}) {
      *norm = RandomNorm();
    }
    for (Linear* const map : {&layer.query, &layer.key, &layer.value, &layer.output}) {
      *map = RandomLinear(kWidth, kWidth);
    }
    if (tested.has_landmarks) layer.dynamic_projection = RandomLinear(kHeads * kRank, kWidth);
    if (tested.taps > 0) layer.value_taps = Random({kHeads, tested.taps});
    layer.feed_forward.in = RandomLinear(2 * kWidth, kWidth);
    layer.feed_forward.out = RandomLinear(kWidth, 2 * kWidth);
    layer.heads = kHeads;
    return layer;
  }
};

TEST_P(GpuTextLayerTest, GivesWhatItGivesWithoutAGpu) {
  const TextCase& tested = GetParam();
  const TextLayer layer = RandomLayer(tested);
  // Masked tokens within and at the end; more than a tile; one token.
  std::vector<std::vector<int32_t>> ids = {std::vector<int32_t>(40, 1), std::vector<int32_t>(100, 2), {7}};
  std::fill(ids[0].begin() + 9, ids[0].begin() + 20, 0);
  ids[0].resize(60, 0);
  const std::vector<absl::Span<const int32_t>> documents(ids.begin(), ids.end());
  const WindowRule rule = {.size = tested.window, .see_nothing = tested.has_landmarks};
  const auto packed = std::make_shared<PackedDocuments>(PackDocuments(documents, rule));
  const DocumentTokens tokens = TokensOf(*packed);
  const int64_t cls_rows = tested.has_cls ? tokens.documents : 0;
  const HiddenRows hidden = {.all = Random({cls_rows + packed->rows(), kWidth}), .cls_rows = cls_rows};

  CpuItemAttention on_cpu(packed);
  const HiddenRows expected = layer(hidden, tokens.documents, on_cpu, /*cls_only=*/false);
  const auto layers = [&](const DocumentTokens& on_gpu) {
    EXPECT_TRUE(on_gpu.ids.to(at::kLong).equal(tokens.ids));
    EXPECT_TRUE(on_gpu.positions.equal(tokens.positions));
    EXPECT_TRUE(on_gpu.lengths.equal(tokens.lengths));
    HiddenRows found = layer(hidden, on_gpu.documents, *attention_, /*cls_only=*/false);
    EXPECT_LT(LargestDifference(found.all, expected.all), kRounding);
    return found.all;
  };
  attention_->RunDocuments(PackIds(documents, rule), layers, /*prepared=*/true);

  EXPECT_THAT(device_->kernels_run(), Contains(std::pair<const std::string, int64_t>("AttendInDocuments", 1)));
  EXPECT_EQ(device_->kernels_run().count("MergeSplits"), tested.has_landmarks ? 1u : 0u);
  EXPECT_EQ(device_->kernels_run().count("MergeRows"), tested.has_cls ? 1u : 0u);
  EXPECT_EQ(device_->kernels_run().count("ConvolveValues"), tested.taps > 0 ? 1u : 0u);
}

INSTANTIATE_TEST_SUITE_P(Layers, GpuTextLayerTest,
                         ::testing::Values(TextCase{.name = "all"}, TextCase{.name = "NoCls", .has_cls = false},
                                           TextCase{.name = "NoLandmarks", .has_landmarks = false},
                                           TextCase{.name = "WindowsOnly", .has_cls = false, .has_landmarks = false},
                                           TextCase{.name = "NoWindows", .window = 0},
                                           TextCase{.name = "Taps", .has_cls = false, .window = 5, .taps = 3},
                                           TextCase{.name = "ClsAndManyTaps", .taps = 35}),
                         ::testing::PrintToStringParamName());

TEST_F(GpuItemAttentionTest, ANetworkWithoutClsGivesWhatItGivesWithoutAGpu) {
  TextClassifierConfig config = SmallTextConfig();
  config.cls = ClsKind::kNone;
  config.value_convolution = 3;
  config.pooled_length = 30;
  const auto tensors = RandomTextTensors(config, /*seed=*/1);
  const TextNetwork network = MakeTextNetwork(config, [&](const std::string& name) { return tensors.at(name); });
  std::vector<int32_t> masked(20, 5);
  std::fill(masked.begin() + 3, masked.begin() + 10, 0);
  const std::vector<int32_t> longer(30, 7);
  const std::vector<absl::Span<const int32_t>> documents = {masked, longer};
  const auto packed = std::make_shared<PackedDocuments>(network.Pack(documents));
  const at::Tensor expected = network.Logits(packed);
  const auto layers = [&](const DocumentTokens& on_gpu) {
    return network.Run(ClassifierOutput::kLogits, on_gpu, *attention_);
  };
  const auto logits = attention_->RunDocuments(network.PackForGpu(documents), layers, /*prepared=*/true);
  EXPECT_LT(LargestDifference(at::tensor(logits).view(expected.sizes()), expected), kRounding);
  const std::map<std::string, int64_t> kernels = device_->kernels_run();
  EXPECT_THAT(kernels, Contains(std::pair<const std::string, int64_t>("ConvolveValues", config.layers)));
  EXPECT_THAT(kernels, Contains(std::pair<const std::string, int64_t>("MergeSums", 1)));
}

struct VilCase {
  std::string name;
  int64_t global_tokens = 1;
  bool has_landmarks = true;
  bool has_bias = true;
  int64_t window = 4;
};
void PrintTo(const VilCase& tested, std::ostream* to) { *to << tested.name; }

class GpuVilAttentionTest : public GpuItemAttentionTest, public ::testing::WithParamInterface<VilCase> {
 protected:
  static constexpr int64_t kSide = 8;

  static VilSparseAttention RandomAttention(const VilCase& tested) {
    VilSparseAttention vil = {.query_key_value = RandomLinear(3 * kWidth, kWidth),
                              .dynamic_projection = {},
                              .landmark_norm = RandomNorm(),
                              .full_norm = RandomNorm(),
                              .bias = {},
                              .output = RandomLinear(kWidth, kWidth),
                              .heads = kHeads,
                              .global_tokens = tested.global_tokens,
                              .window_size = tested.window,
                              .side = kSide};
    if (tested.has_landmarks) vil.dynamic_projection = RandomLinear(kHeads * kRank, kWidth);
    if (tested.has_bias) {
      vil.bias.index = WindowBiasIndex(tested.window, at::kCPU);
      vil.bias.table = Random({vil.bias.index.max().item<int64_t>() + 1, kHeads});
    }
    return vil;
  }
};

TEST_P(GpuVilAttentionTest, GivesWhatItGivesWithoutAGpu) {
  const VilSparseAttention vil = RandomAttention(GetParam());
  const at::Tensor rows = Random({2, GetParam().global_tokens + kSide * kSide, kWidth});
  CpuItemAttention on_cpu;
  EXPECT_LT(LargestDifference(vil(rows, {}, *attention_), vil(rows, {}, on_cpu)), kRounding);
  // A single image: the stride between images must not be used.
  const at::Tensor first = rows.narrow(0, 0, 1);
  EXPECT_LT(LargestDifference(vil(first, {}, *attention_), vil(first, {}, on_cpu)), kRounding);
  EXPECT_THAT(device_->kernels_run(), Contains(std::pair<const std::string, int64_t>("AttendInWindows", 2)));
}

INSTANTIATE_TEST_SUITE_P(Attentions, GpuVilAttentionTest,
                         ::testing::Values(VilCase{.name = "all"}, VilCase{.name = "NoGlobal", .global_tokens = 0},
                                           VilCase{.name = "NoLandmarks", .has_landmarks = false},
                                           VilCase{.name = "WindowsOnly", .global_tokens = 0, .has_landmarks = false},
                                           VilCase{.name = "NoBias", .has_bias = false, .window = 3},
                                           VilCase{.name = "NoWindows", .has_bias = false, .window = 0}),
                         ::testing::PrintToStringParamName());

TEST_F(GpuItemAttentionTest, CvtGivesWhatItGivesWithoutAGpu) {
  CvtConfig config = SmallCvt();
  config.shared_dual_norm = false;
  const CvtNetwork network = NetworkOver(config, RandomCvtTensors(config, 1));
  const at::Tensor images = RandomImages(2, 23, 15, 1);
  const at::Tensor expected = network.Logits(images, nullptr);
  EXPECT_LT(LargestDifference(network.head(network.Features(images, nullptr, *attention_)), expected), kRounding);
  EXPECT_THAT(device_->kernels_run(),
              UnorderedElementsAre(std::pair<const std::string, int64_t>("NormMany", 9),
                                   std::pair<const std::string, int64_t>("MapRows", 9),
                                   std::pair<const std::string, int64_t>("MixSplits", 3),
                                   std::pair<const std::string, int64_t>("MergeSplits", 3),
                                   std::pair<const std::string, int64_t>("AttendInWindows", 3)));
}

// The arguments of the methods, for documents or images.
struct Verbs {
  RowsToAttend attend;
  at::Tensor attended;
  RowsToCompress compress;
  OwnRowsToAttend own;
  RowsToConvolve convolve;  // of documents
  at::Tensor means;         // of the rows after attention
};

// `rows` have adjacent queries, keys, values and logits.
Verbs OverRows(const at::Tensor& rows, int64_t items, at::ScalarType type) {
  const auto part = [&](int64_t first, int64_t count) { return rows.narrow(-1, first, count).to(type); };
  const LayerNorm norm = {.gain = at::ones({kWidth}), .bias = at::zeros({kWidth})};
  const auto of_items = [&](double number) { return at::full({items, kWidth}, number, type); };
  Verbs verbs;
  verbs.attend = {.heads = kHeads,
                  .queries = part(0, kWidth),
                  .tokens = {.keys = part(kWidth, kWidth), .values = part(2 * kWidth, kWidth)},
                  .shared = {}};
  verbs.compress = {.heads = kHeads,
                    .logits = part(3 * kWidth, kHeads * kRank),
                    .tokens = verbs.attend.tokens,
                    .key_norm = norm,
                    .value_norm = norm};
  verbs.own = {.heads = kHeads,
               .queries = of_items(0.1),
               .own = {.keys = of_items(0.2), .values = of_items(0.3)},
               .rows = {},
               .attended = at::empty({items, kWidth}, type)};
  verbs.convolve = {.heads = kHeads,
                    .taps = at::linspace(-1, 1, kHeads * 5).view({kHeads, 5}).to(type),
                    .values = verbs.attend.tokens.values,
                    .sums = {}};
  return verbs;
}

// Calls the methods in turn: landmarks, attention to them (`attend_rows`), attention to the resulting rows.
template <typename Attend>
void RunVerbs(ItemAttention& attention, Verbs& verbs, const Attend& attend_rows) {
  verbs.attend.shared = attention.Landmarks(verbs.compress, /*before=*/{});
  verbs.attended = verbs.own.rows.keys = verbs.own.rows.values = verbs.convolve.sums = attend_rows(verbs.attend);
  attention.AttendToRows(verbs.own);
}

class GpuItemBitsTest : public GpuItemAttentionTest, public ::testing::WithParamInterface<at::ScalarType> {
 protected:
  static constexpr int64_t kChannels = 3 * kWidth + kHeads * kRank;

  // Rows of documents with these numbers of tokens.
  Verbs OfDocuments(const std::vector<int64_t>& lengths, const at::Tensor& rows, at::ScalarType type) {
    std::vector<std::vector<int32_t>> ids;
    for (const int64_t length : lengths) ids.emplace_back(length, 1);
    const PackedIds packed =
        PackIds(std::vector<absl::Span<const int32_t>>(ids.begin(), ids.end()), {.size = 8, .see_nothing = true});
    Verbs verbs = OverRows(rows, static_cast<int64_t>(lengths.size()), type);
    const auto layers = [&](const DocumentTokens&) {
      RunVerbs(*attention_, verbs,
               [&](const RowsToAttend& attend) { return attention_->AttendInDocuments(attend, 0); });
      attention_->ConvolveValues(verbs.convolve);
      verbs.means = attention_->MeanOfRows(verbs.attended, /*length=*/7);
      return at::zeros({1, 1});
    };
    attention_->RunDocuments(packed, layers, /*prepared=*/true);
    return verbs;
  }
  Verbs OfImages(const at::Tensor& rows, at::ScalarType type) {
    Verbs verbs = OverRows(rows, rows.size(0), type);
    RunVerbs(*attention_, verbs, [&](const RowsToAttend& attend) {
      return attention_->AttendInGrids(attend, {.height = 7, .width = 10}, {.side = 4}, /*bias=*/{}, /*others=*/0);
    });
    verbs.means = attention_->MeanOfRows(verbs.attended, /*length=*/7);
    return verbs;
  }
};

TEST_P(GpuItemBitsTest, ADocumentHasTheSameBitsAloneAndInCompany) {
  const std::vector<int64_t> lengths = {70, 90, 3};
  const at::Tensor rows = Random({163, kChannels});
  const Verbs all = OfDocuments(lengths, rows, GetParam());
  for (int64_t item = 0, first = 0; item < 3; first += lengths[item++]) {
    const Verbs alone = OfDocuments({lengths[item]}, rows.narrow(0, first, lengths[item]), GetParam());
    EXPECT_TRUE(alone.attended.equal(all.attended.narrow(0, first, lengths[item]))) << item;
    EXPECT_TRUE(alone.attend.shared.keys[0].equal(all.attend.shared.keys[item])) << item;
    EXPECT_TRUE(alone.own.attended[0].equal(all.own.attended[item])) << item;
    EXPECT_TRUE(alone.means[0].equal(all.means[item])) << item;
  }
}

TEST_P(GpuItemBitsTest, AnImageHasTheSameBitsAloneAndInCompany) {
  const at::Tensor rows = Random({3, 70, kChannels});
  const Verbs all = OfImages(rows, GetParam());
  for (int64_t item = 0; item < 3; ++item) {
    const Verbs alone = OfImages(rows.narrow(0, item, 1), GetParam());
    EXPECT_TRUE(alone.attended[0].equal(all.attended[item])) << item;
    EXPECT_TRUE(alone.attend.shared.values[0].equal(all.attend.shared.values[item])) << item;
    EXPECT_TRUE(alone.own.attended[0].equal(all.own.attended[item])) << item;
    EXPECT_TRUE(alone.means[0].equal(all.means[item])) << item;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GpuItemBitsTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& tested) { return tested.param == at::kFloat ? "Float" : "BFloat16"; });

TEST_F(GpuItemBitsTest, RowsOfBFloat16GiveWhatTheSameNumbersInFloatGive) {
  // Rounded first, so that both have the same input.
  const at::Tensor rows = Random({2, 70, kChannels}).to(at::kBFloat16).to(at::kFloat);
  const Verbs in_float = OfImages(rows, at::kFloat), in_bfloat16 = OfImages(rows, at::kBFloat16);
  // Outputs are means of normal numbers; landmarks are normalised. Both are rounded to 8 bits, and so were the
  // probabilities that outputs were mixed by.
  EXPECT_LT(LargestDifference(in_bfloat16.attended.to(at::kFloat), in_float.attended), 0.02);
  EXPECT_LT(LargestDifference(in_bfloat16.attend.shared.keys.to(at::kFloat), in_float.attend.shared.keys), 0.05);
  EXPECT_LT(LargestDifference(in_bfloat16.own.attended.to(at::kFloat), in_float.own.attended), 0.02);
  // Each of 70 rows is off by up to 0.02, in either direction, and the mean is over 7.
  EXPECT_LT(LargestDifference(in_bfloat16.means.to(at::kFloat), in_float.means), 0.02);
}

TEST_F(GpuItemAttentionTest, ImagesComeToTheDeviceInTheirOrder) {
  const ImageItem first = {.height = 1, .width = 2, .values = {1, 2, 3, 4}},
                  second = {.height = 1, .width = 2, .values = {5, 6, 7, 8}};
  for (const auto& images : {std::vector<const ImageItem*>{&first}, {&second, &first}, {&second}}) {
    const auto layers = [&](const at::Tensor& brought) {
      EXPECT_EQ(brought.sizes(), at::IntArrayRef({static_cast<int64_t>(images.size()), 2, 1, 2}));
      return brought.flatten(1) + 1;
    };
    const auto logits = attention_->RunImages(images, /*channels=*/2, layers, /*prepared=*/true);
    std::vector<float> expected;
    for (const ImageItem* const image : images) {
      for (const float value : image->values) expected.push_back(value + 1);
    }
    EXPECT_THAT(logits, ElementsAreArray(expected));
  }
}

TEST(GpuItemAttention, RefusesHeadsThatAreTooWide) {
  const ModelGpu gpu = {.tensors = at::kCPU, .open = [] { return MakeEmulatedDevice(); }, .loss = nullptr};
  EXPECT_THAT(MakeGpuItemAttention(gpu, 128), IsOk());
  EXPECT_THAT(MakeGpuItemAttention(gpu, 129).status().ToString(),
              HasSubstr("UNIMPLEMENTED: the model's heads are 129 wide; a GPU supports at most 128"));
}

}  // namespace longshort::models::gpu_item_attention_test
